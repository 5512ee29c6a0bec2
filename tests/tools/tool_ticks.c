/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ticks of everybody's cpu-clock events, counted by the kernel's own timers and by no event:
 * what a profiler delivered can be held against it.
 *
 *	tool_ticks
 *
 * Prints "ready"; at the end of its input one JSON array of {owner, period_ns, target, cpu, fired,
 * skipped} (ticks.h). Exit 77: this user or kernel does not allow it, with the reason.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fusee/plugin.h>

#include "ticks.h"

FUSEE_EMBED(ticks_bpf, "ticks.bpf.o");

static __attribute__((format(printf, 1, 2), noreturn)) void give_up(const char *format, ...)
{
	va_list ap;

	fputs("# skip: ", stdout);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	_exit(77);
}

static int say_nothing(enum libbpf_print_level level, const char *format, va_list ap)
{
	(void)level;
	(void)format;
	(void)ap;
	return 0;
}

/* A function of the kernel, 0: not reported. */
static uint64_t address_of(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], symbol[256];
	uint64_t at = 0, found = 0;

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx %*c %255s", &at, symbol) == 2 && !strcmp(symbol, name))
			found = at;
	if (f)
		fclose(f);
	return found;
}

static struct bpf_object *load(void)
{
	struct bpf_object *object;
	struct bpf_program *program;
	uint64_t function = address_of("perf_swevent_hrtimer");
	uint32_t zero = 0;
	int r;

	if (!function)
		give_up("/proc/kallsyms does not tell where perf_swevent_hrtimer is");
	libbpf_set_print(say_nothing);
	object = bpf_object__open_mem(
		ticks_bpf, (size_t)((const char *)ticks_bpf_end - (const char *)ticks_bpf), NULL);
	r = object ? bpf_object__load(object) : -errno;
	if (r)
		give_up("the kernel does not load it: %s", strerror(-r));
	r = bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "ticks_function"), &zero,
				&function, 0);
	if (r)
		give_up("it cannot be given the function: %s", strerror(errno));
	bpf_object__for_each_program(program, object) if (!bpf_program__attach(program))
		give_up("timers' tracepoints are not there: %s", strerror(errno));
	return object;
}

static void print(int map)
{
	struct ticks_key key, *last = NULL;
	struct ticks_count c;
	const char *sep = "[";

	for (; !bpf_map_get_next_key(map, last, &key); last = &key) {
		if (bpf_map_lookup_elem(map, &key, &c))
			continue;
		printf("%s{\"owner\": %u, \"period_ns\": %llu, \"target\": %u, \"cpu\": %u, "
		       "\"fired\": %llu, \"skipped\": %llu, \"hidden_while_idle\": %llu, "
		       "\"first_ns\": %lld, \"last_ns\": %lld}",
		       sep, key.owner, (unsigned long long)key.period, key.target, key.cpu,
		       (unsigned long long)c.fired, (unsigned long long)c.skipped,
		       (unsigned long long)c.hidden_while_idle, (long long)c.first_ns,
		       (long long)c.last_ns);
		sep = ",\n ";
	}
	puts(*sep == '[' ? "[]" : "]");
}

int main(void)
{
	struct bpf_object *object = load();
	char buf[64];

	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, buf, sizeof(buf)) > 0)
		;
	print(bpf_object__find_map_fd_by_name(object, "ticks_counts"));
	bpf_object__close(object);
	return 0;
}
