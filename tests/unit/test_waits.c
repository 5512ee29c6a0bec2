/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/report
/* The table of waits of programs whose languages have run times and standard libraries. */
#include "test.h"

#include "profile/builder.h"
#include "report/report.h"
#include "lib/profiles.h"

/* A frame: "LIBRARY!NAME" or "NAME", of no library; " (FILE)" behind: of this source file. */
static uint32_t frame(struct builder *b, char *s)
{
	char *file = strstr(s, " ("), *name = strchr(s, '!');
	struct fusee_mapping map = {.limit = UINT64_MAX};
	struct fusee_location l = {0};
	struct fusee_function f = {0};
	struct fusee_line line = {0};

	if (file) {
		*file = '\0';
		file[strlen(file + 1)] = '\0'; /* its bracket */
		f.file = builder_cstr(b, file + 2);
	}
	if (name && name < s + strlen(s)) {
		*name++ = '\0';
		map.path = builder_cstr(b, s);
		if (!strcmp(s, "kernel"))
			map.flags = FUSEE_MAPPING_KERNEL;
		l.mapping = builder_mapping(b, &map);
	} else {
		name = s;
	}
	f.name = builder_cstr(b, name);
	line.function = builder_function(b, &f);
	return builder_location(b, &l, &line, 1);
}

/* A wait of n seconds; frames parted by ';', leaf first. */
static void waits(struct builder *b, const char *stack, int64_t n)
{
	const int64_t values[] = {1, n * 1000000000};
	char *copy = strdup(stack), *at = NULL;
	uint32_t locations[64], k = 0;

	for (char *s = strtok_r(copy, ";", &at); s; s = strtok_r(NULL, ";", &at))
		locations[k++] = frame(b, s);
	builder_sample(b, builder_stack(b, locations, k), NULL, 0, 0, 0, values);
	free(copy);
}

static void check(struct builder *b, const char *rows)
{
	struct render_options o = {.width = 200};
	struct buf out = {0};

	builder_profile(b)->default_type = 1;
	CHECK_INT(render_waits(finished(b), &o, &out), 0);
	buf_add(&out, "", 1);
	CHECK_STR(out.p, rows);
	buf_fini(&out);
}

#define TEST_OF_BUILDER(id) TEST_WITH(id, struct builder *, b, new_builder(), builder_free(b))

#define FUTEX "kernel!futex_do_wait;kernel!__x64_sys_futex;"
#define GO(package, name) "/bin/x!" package "." name " (/usr/go/src/" package "/x.go);"
#define MAIN(name) "/bin/x!main." name " (/home/me/x.go);"

/* A goroutine that waits in the kernel; threads that have none; a package with a domain, whose last
 * element is that of one without; an assembler's file. */
TEST_OF_BUILDER(go)
{
	waits(b,
	      "kernel!__x64_sys_fsync;/bin/x!internal/runtime/syscall.Syscall6 "
	      "(/usr/go/src/x.s);" GO("syscall", "Fsync") GO("internal/poll", "(*FD).Fsync")
		      GO("os", "(*File).Sync") MAIN("store") MAIN("serve")
			      GO("net/http", "HandlerFunc.ServeHTTP"),
	      50);
	waits(b,
	      FUTEX GO("runtime", "futex") GO("runtime", "futexsleep") GO("runtime", "notesleep")
		      GO("runtime", "stopm") GO("runtime", "findRunnable") GO("runtime", "schedule")
			      GO("runtime", "park_m"),
	      20);
	waits(b,
	      "kernel!__x64_sys_write;" GO("syscall", "write") GO("internal/poll", "(*FD).Write")
		      GO("net", "(*conn).Write") GO("net/http", "(*conn).serve"),
	      15);
	waits(b,
	      FUTEX GO("runtime", "futex") GO("runtime", "makeslice")
		      GO("example.com/runtime", "Wait") MAIN("work"),
	      10);
	waits(b, FUTEX "/bin/x!runtime.constprop.0 (/home/me/x.c);/bin/x!main (/home/me/x.c)", 5);
	check(b, "     50.00 s  50.0 %   fsync  os.(*File).Sync < main.store < main.serve\n"
		 "     20.00 s  20.0 %   futex  runtime.findRunnable < runtime.schedule < "
		 "runtime.park_m\n"
		 "     15.00 s  15.0 %   write  net.(*conn).Write < net/http.(*conn).serve\n"
		 "     10.00 s  10.0 %   futex  runtime.makeslice < example.com/runtime.Wait < "
		 "main.work\n"
		 "      5.00 s   5.0 %   futex  runtime.constprop.0 < main\n");
}

#define JVM(name) "/usr/lib/jvm/lib/server/libjvm.so!" name ";"
#define PARK                                                                                   \
	FUTEX "/lib/libc.so.6!pthread_cond_wait;" JVM("Parker::park")                          \
		JVM("Unsafe_Park") "jdk.internal.misc.Unsafe.park;java.util.concurrent.locks." \
				   "LockSupport.park "                                         \
				   "(LockSupport.java);java.util.concurrent.locks."            \
				   "AbstractQueuedSynchronizer.acquire;"

/* A monitor; a lock of the library; a queue, by the program and by a pool of threads; a library's
 * native half; the machine's own threads. */
TEST_OF_BUILDER(java)
{
	waits(b,
	      FUTEX "/lib/libc.so.6!pthread_cond_wait;" JVM("os::PlatformEvent::park")
		      JVM("ObjectMonitor::enter") "_complete_monitor_locking_Java;Server.append "
						  "(Server.java);Server.run (Server.java)",
	      40);
	waits(b,
	      PARK "java.util.concurrent.locks.ReentrantLock.lock;Server.flush "
		   "(Server.java);Server.run (Server.java)",
	      20);
	waits(b,
	      PARK "java.util.concurrent.LinkedBlockingQueue.take;"
		   "java.util.concurrent.ThreadPoolExecutor.getTask;java.lang.Thread.run",
	      15);
	waits(b, PARK "java.util.concurrent.LinkedBlockingQueue.take;Server.next;Server.run", 10);
	waits(b,
	      "kernel!__x64_sys_fdatasync;/lib/libc.so.6!fdatasync;"
	      "/usr/lib/jvm/lib/libnio.so!Java_sun_nio_ch_FileDispatcherImpl_force0;"
	      "sun.nio.ch.FileDispatcherImpl.force0;sun.nio.ch.FileChannelImpl.force;Server.append "
	      "(Server.java);Server.run (Server.java)",
	      9);
	waits(b,
	      FUTEX JVM("os::PlatformMonitor::wait") JVM("Monitor::wait") JVM("CompileQueue::get")
		      JVM("CompileBroker::compiler_thread_loop"),
	      6);
	check(b, "     40.00 s  40.0 %   futex      Server.append < Server.run\n"
		 "     20.00 s  20.0 %   futex      java.util.concurrent.locks.ReentrantLock.lock "
		 "< Server.flush < Server.run\n"
		 "     15.00 s  15.0 %   futex      java.util.concurrent.LinkedBlockingQueue.take "
		 "< java.util.concurrent.ThreadPoolExecutor.getTask < java.lang.Thread.run\n"
		 "     10.00 s  10.0 %   futex      java.util.concurrent.LinkedBlockingQueue.take "
		 "< Server.next < Server.run\n"
		 "      9.00 s   9.0 %   fdatasync  sun.nio.ch.FileChannelImpl.force < "
		 "Server.append < Server.run\n"
		 "      6.00 s   6.0 %   futex      CompileQueue::get < "
		 "CompileBroker::compiler_thread_loop\n");
}

#define PY "/usr/lib/python3.11/"

/* An extension in C of the program's is its own; one of Python's is not. A program that is named as
 * an interpreter is shown all the same. */
TEST_OF_BUILDER(interpreters)
{
	waits(b,
	      FUTEX "/usr/bin/python3.11!lock_PyThread_acquire_lock;Condition.wait (" PY
		    "threading.py);Queue.get (" PY "queue.py);consume (/srv/app.py);"
		    "Thread.run (" PY "threading.py)",
	      40);
	waits(b,
	      "kernel!__x64_sys_recvfrom;" PY "lib-dynload/_socket.so!sock_recv;ask (" PY
	      "site-packages/client.py);index (/srv/app.py)",
	      25);
	waits(b,
	      FUTEX PY "site-packages/fast.so!gather;/usr/bin/python3.11!call;work (/srv/app.py)",
	      15);
	waits(b,
	      FUTEX "/usr/bin/ruby!rb_mutex_lock;Queue#pop (/usr/lib/ruby/3.1.0/thread.rb);"
		    "perform (/usr/lib/ruby/gems/3.1.0/gems/jobs/jobs.rb)",
	      10);
	waits(b, FUTEX "/opt/chain/node!recv;/opt/chain/node!main", 6);
	waits(b, FUTEX "/usr/bin/pythonic!recv;/usr/bin/pythonic!main", 4);
	check(b, "     40.00 s  40.0 %   futex     Queue.get < consume < Thread.run\n"
		 "     25.00 s  25.0 %   recvfrom  ask < index\n"
		 "     15.00 s  15.0 %   futex     gather < work\n"
		 "     10.00 s  10.0 %   futex     Queue#pop < perform\n"
		 "     10.00 s  10.0 %   futex     recv < main\n");
}

TEST_OF_BUILDER(rust_and_cpp)
{
	waits(b,
	      FUTEX "/bin/x!std::sys::futex_wait (/rustc/1/library/std/src/futex.rs);"
		    "/bin/x!<T as Lock>::lock (/rustc/1/library/std/src/mutex.rs);"
		    "/bin/x!app::work (src/main.rs)",
	      60);
	waits(b,
	      FUTEX "/usr/lib/libstdc++.so.6!std::condition_variable::wait;/bin/y!drain (y.cc);"
		    "/bin/y!main (y.cc)",
	      40);
	check(b, "     60.00 s  60.0 %   futex  <T as Lock>::lock < app::work\n"
		 "     40.00 s  40.0 %   futex  std::condition_variable::wait < drain < main\n");
}

/* Sums of nine digits leave a gap between the columns. */
TEST_OF_BUILDER(wide_numbers)
{
	struct render_options o = {.width = 80};
	struct buf out = {0};
	const int64_t values[] = {148439040, 0};
	char f[] = "/lib/libc.so.6!malloc";
	uint32_t at = frame(b, f);

	builder_sample(b, builder_stack(b, &at, 1), NULL, 0, 0, 0, values);
	CHECK_INT(render_hottest(finished(b), &o, &out), 0);
	buf_add(&out, "", 1);
	CHECK_STR(out.p, "          self               total\n"
			 "   148,439,040 100.0 % 148,439,040 100.0 %   malloc  libc.so.6\n");
	buf_fini(&out);
}
