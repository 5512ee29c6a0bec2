// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/net/control.c core/net/server.c core/net/listener.c core/net/loop.c
// sources: core/base/buf.c core/base/clock.c core/base/utf8.c core/base/json.c core/base/guess.c
// sources: core/base/metrics.c
// libs: -lpthread -ljson-c
// clang-format on
// What a client of the control socket may send: each line that comes back is an answer.
#include "client.h"
#include "net/control.h"

static void answer(void *arg, const char *word, struct control_reply *r)
{
	(void)arg;
	control_answer(r, "", *word ? word : NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct control_command commands[] = {
		{"status", answer}, {"flush", answer}, {0}};
	static struct loop *loop;
	static struct control *control;
	struct buf heard;

	if (!loop && (loop_new(&loop) || control_new(&control, loop, place + 5, commands, NULL)))
		abort();
	fuzz_talk(loop, place + 5, data, size, &heard);
	for (char *p = heard.p, *end = p ? p + heard.len : p, *eol; p < end; p = eol + 1) {
		eol = memchr(p, '\n', (size_t)(end - p));
		if (!eol || eol[-1] != '}' ||
		    (strncmp(p, "{\"ok\": true", 11) &&
		     strncmp(p, "{\"ok\": false, \"error\": \"", 23)))
			abort();
	}
	buf_fini(&heard);
	return 0;
}
