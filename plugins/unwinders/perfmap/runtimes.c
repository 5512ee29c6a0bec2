/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes.h"

#include <fusee/helpers.h>

#define FILES(...)                \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}

const struct fusee_runtime perfmap_runtimes[PERFMAP_RUNTIMES] = {
	FUSEE_SIZED(struct fusee_runtime, .name = "Python", .files = FILES("libpython", "python"),
		    .environment = "PYTHONPERFSUPPORT=1", .major = 3, .minor = 12,
		    .flags = FUSEE_RUNTIME_INTERPRETS),
	FUSEE_SIZED(struct fusee_runtime, .name = "Node.js", .files = FILES("node", "libnode"),
		    .environment = "NODE_OPTIONS='--perf-basic-prof "
				   "--interpreted-frames-native-stack'"),
	FUSEE_SIZED(struct fusee_runtime, .name = "Java", .files = FILES("libjvm.so"),
		    .environment = "JAVA_TOOL_OPTIONS='-XX:+PreserveFramePointer "
				   "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit'",
		    .command = "jcmd", .command_end = "Compiler.perfmap"),
	FUSEE_SIZED(struct fusee_runtime, .name = "Ruby", .files = FILES("libruby", "ruby"),
		    .environment = "RUBYOPT='--yjit --yjit-perf'", .major = 3, .minor = 3,
		    .flags = FUSEE_RUNTIME_INTERPRETS),
	FUSEE_SIZED(struct fusee_runtime, .name = ".NET",
		    .files = FILES("libcoreclr.so", "libclrjit.so"),
		    .environment = "DOTNET_PerfMapEnabled=1"),
	FUSEE_SIZED(struct fusee_runtime, .name = "Erlang", .files = FILES("beam.smp"),
		    .environment = "ERL_FLAGS='+JPperf true'"),
};
