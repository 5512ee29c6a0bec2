// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/worker/server.c core/inspection/host.c core/worker/step.c core/symbols/frames.c core/worker/protocol.c
// sources: core/names/make.c core/sandbox/message.c core/inspection/block.c core/worker/symbolize_reply_write.c
// sources: core/process/elf.c core/process/elf_section.c core/process/elf_symbol.c core/process/elf_note.c core/base/pread.c
// sources: core/symbols/symbols.c core/symbols/compiler.c core/symbols/source.c core/symbols/symtab.c core/symbols/plt.c core/symbols/fde.c core/base/ranges.c
// sources: core/symbols/debuglink.c core/demangle/demangle.c core/demangle/dlang.c core/symbols/dwarf.c core/symbols/dwarf_image.c
// sources: core/symbols/dwarf_name.c core/symbols/dwarf_unit.c core/symbols/gopclntab.c core/symbols/gomodule.c
// sources: core/base/utf8.c core/base/buf.c core/base/arena.c core/base/dict.c core/base/holes.c
// sources: core/plugin/option_list.c core/plugin/options.c core/base/text.c core/base/guess.c
// flags: -Wl,--wrap=signal
// libs: -ldw -lelf -lz -lzstd -llzma -liberty -lunwind-x86_64 -lunwind -lcrypto
// clang-format on
// The worker's side of the protocol: any requests in any order, with any files. Each well-formed
// request has one answer, with its id; the agent believes each block.
#include "fuzz.h"
#include <signal.h>
#include <sys/socket.h>

#include "plugin/plugin.h"
#include "inspection/internal/block.h"
#include "worker/internal/protocol.h"
#include "sandbox/sandbox.h"
#include "worker/worker.h"

#define MAX_REQUESTS 8

void (*__wrap_signal(int sig, void (*handler)(int)))(int);

/* The fuzzer's own handlers stay. */
void (*__wrap_signal(int sig, void (*handler)(int)))(int)
{
	(void)sig;
	return handler;
}

/* What the worker has of other rooms, and this program must not have. */
int sandbox_enter(int sock, void (*denied)(int sock, uint32_t call), uint64_t memory_limit,
		  const char **what)
{
	(void)sock;
	(void)denied;
	(void)memory_limit;
	(void)what;
	return 0;
}

uint32_t sandbox_refused(uint32_t *last)
{
	*last = 0;
	return 0;
}

int plugin_set_open(const char *dir, const struct fusee_host *host,
		    const struct unwinder_choice *choice, struct plugin_set *ret)
{
	(void)dir;
	(void)host;
	(void)choice;
	(void)ret;
	return -ENOENT;
}

int plugin_misused(struct fusee_instance *instance, enum plugin_misuse how)
{
	(void)instance;
	(void)how;
	return -EINVAL;
}

void plugin_host_log(struct fusee_instance *instance, int level, const char *text)
{
	(void)instance;
	(void)level;
	(void)text;
}

int plugin_host_fail(struct fusee_instance *instance, int err, const char *text)
{
	(void)instance;
	(void)text;
	return err;
}

/* ---- the input: a number of requests, their heads, the bytes of a file ---- */

static uint32_t send_requests(int sock, const uint8_t *data, size_t size, int file)
{
	uint32_t n = 0;

	for (; n < MAX_REQUESTS && size >= sizeof(struct protocol_request); n++) {
		struct protocol_request q;
		static const char payload[4096];
		int fds[3] = {file, file, file};

		memcpy(&q, data, sizeof(q));
		data += sizeof(q);
		size -= sizeof(q);
		q.id = n + 1;
		q.fds &= 7;
		q.payload %= sizeof(payload);
		if (protocol_send_request(sock, &q, fds, payload))
			break;
	}
	return n;
}

static void check_block(const struct protocol_reply *r, int fd, uint32_t kind)
{
	struct inspection *i;
	void *map;

	if (protocol_map(fd, r->bytes, &map))
		abort();
	if (kind != REQUEST_INSPECT) {
		munmap(map, r->bytes);
		return;
	}
	if (inspection_open(&i, map, r->bytes, NULL))
		abort();
	inspection_unref(i);
}

static void check_replies(int sock, const uint8_t *data, uint32_t n)
{
	struct protocol_reply r;
	uint64_t id = 0;
	int fd, got;

	while ((got = protocol_receive_reply(sock, &r, &fd)) == 1) {
		struct protocol_request q;

		if (!id && r.kind == REPLY_READY) {
			id = 1;
			continue;
		}
		if (r.kind != REPLY_DONE || r.id != id || id > n)
			abort();
		memcpy(&q, data + (id - 1) * sizeof(q), sizeof(q));
		if (fd >= 0) {
			check_block(&r, fd, q.kind);
			close(fd);
		}
		id++;
	}
	if (got == -EBADMSG || id != n + 1)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int pair[2], file = memfd_create("file", MFD_CLOEXEC);
	size_t heads = size ? data[0] % (MAX_REQUESTS + 1) * sizeof(struct protocol_request) : 0;
	uint32_t n;

	data += !!size;
	size -= !!size;
	heads = heads < size ? heads : size;
	if (file < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ||
	    write(file, data + heads, size - heads) != (ssize_t)(size - heads))
		abort();
	n = send_requests(pair[0], data, heads, file);
	shutdown(pair[0], SHUT_WR);
	worker_run(pair[1], 0, (char *[]){NULL});
	check_replies(pair[0], data, n);
	close(pair[0]);
	close(pair[1]);
	close(file);
	return 0;
}
