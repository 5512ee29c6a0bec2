/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC-web answers 200 even if it refuses a request. The status is in the headers if there is no
 * message (grpc-status, grpc-message), else in the last frame of the body, as lines of the same
 * names. An answer without a status is not gRPC's, but another server's page, or truncated. The
 * gateway has the same codes in JSON, {} for success; its server has a page for people under every
 * other path.
 */
#include <fusee/json.h>
#include <fusee/proto.h>
#include <stdlib.h>
#include <strings.h>

#include "write.h"

#define TEXT 2048 /* bytes of a message that are read */

struct status {
	int code; /* -1: the answer has none */
	char message[TEXT];
};

static bool parse_code(struct fusee_str s, int *code)
{
	*code = 0;
	for (uint64_t i = 0; i < s.len; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		*code = *code * 10 + (s.p[i] - '0');
		if (*code > 999)
			return false;
	}
	return s.len;
}

/* The status of headers, or of lines like them. */
static void read_lines(const struct fusee_http_answer *a, struct status *s)
{
	struct fusee_str value;

	if (!fusee_http_header(a, "grpc-status", &value) || !parse_code(value, &s->code)) {
		s->code = -1;
		return;
	}
	if (fusee_http_header(a, "grpc-message", &value))
		fusee_unescape(s->message, sizeof(s->message), value, "%");
}

/* The first frame of trailers, or of a message that is not compressed; trailers are behind
 * messages. */
static bool find_frame(struct fusee_str body, bool trailers, struct fusee_str *bytes)
{
	while (body.len >= FUSEE_PROTO_FRAME) {
		const uint8_t *p = (const uint8_t *)body.p;
		uint64_t n = fusee_proto_frame_length(p);

		if (n > body.len - FUSEE_PROTO_FRAME)
			return false;
		if (trailers ? p[0] & 0x80 : !p[0]) {
			*bytes = (struct fusee_str){body.p + FUSEE_PROTO_FRAME, n};
			return true;
		}
		body.p += FUSEE_PROTO_FRAME + n;
		body.len -= FUSEE_PROTO_FRAME + n;
	}
	return false;
}

static void read_grpc(const struct fusee_http_answer *a, struct status *s)
{
	struct fusee_http_answer trailers = {.status = a->status};

	read_lines(a, s);
	if (s->code < 0 && find_frame(a->body, true, &trailers.head))
		read_lines(&trailers, s);
}

int write_code(const struct fusee_http_answer *a)
{
	struct status s = {.code = -1};

	read_grpc(a, &s);
	return s.code;
}

bool write_message(const struct fusee_http_answer *a, struct fusee_str *message)
{
	return find_frame(a->body, false, message);
}

static bool is_success(const struct fusee_http_answer *a)
{
	return a->status >= 200 && a->status < 300;
}

/* The member "code", a number, of the gateway's errors: {"code":3, "message":"..", ..}. */
static int code_of(struct fusee_str body)
{
	const char *at = body.len ? memmem(body.p, body.len, "\"code\":", 7) : NULL;
	struct fusee_str digits;
	int code;

	if (!at)
		return -1;
	digits.p = at + 7;
	digits.p += strspn(digits.p, " ");
	digits.len = strspn(digits.p, "0123456789");
	return parse_code(digits, &code) ? code : -1;
}

static void read_json(const struct fusee_http_answer *a, struct status *s)
{
	const char *text = a->body.len ? a->body.p : "";

	text += strspn(text, " \t\r\n");
	s->code = code_of(a->body);
	if (*text != '{' || s->code > CODE_LAST) /* a proxy's own, with an HTTP status */
		s->code = -1;
	else if (is_success(a) && s->code < 0)
		s->code = CODE_OK;
	fusee_json_member(a->body, "message", s->message, sizeof(s->message));
}

static enum fusee_http_verdict judge(const struct status *s)
{
	switch (s->code) {
	case CODE_OK:
		return FUSEE_HTTP_TAKEN;
	case CODE_RESOURCE_EXHAUSTED:
		return strstr(s->message, "larger than max") ? FUSEE_HTTP_TOO_LARGE
							     : FUSEE_HTTP_LATER;
	case CODE_CANCELLED:
	case CODE_DEADLINE_EXCEEDED:
	case CODE_ABORTED:
	case CODE_UNAVAILABLE:
		return FUSEE_HTTP_LATER;
	case CODE_NOT_FOUND: /* a project or tenant of a gateway in front of the server */
	case CODE_PERMISSION_DENIED:
	case CODE_UNIMPLEMENTED:
	case CODE_UNAUTHENTICATED:
		return FUSEE_HTTP_DENIED;
	default: /* 2 and 3 mean profiles that it cannot use */
		return FUSEE_HTTP_REFUSED;
	}
}

enum fusee_http_verdict write_verdict(enum write_protocol protocol,
				      const struct fusee_http_answer *a,
				      char words[FUSEE_HTTP_WORDS])
{
	static const char not_parca[] =
		"without a status of gRPC: this is not Parca, or not all of "
		"its answer";
	bool success = is_success(a);
	struct status s = {.code = -1};
	char text[TEXT + 32];

	if (protocol == WRITE_JSON)
		read_json(a, &s);
	else
		read_grpc(a, &s);
	if (s.code == CODE_OK && !success) /* says neither */
		s.code = -1;
	if (s.code >= 0) {
		snprintf(text, sizeof(text), "grpc-status %d%s%s", s.code, *s.message ? ", " : "",
			 s.message);
		fusee_http_words(words, fusee_text(text));
		return judge(&s);
	}
	fusee_http_words(words, success ? fusee_text(not_parca) : a->body);
	if (success) /* another body than a page may mean that it took the profile */
		return fusee_http_is_page(a) ? FUSEE_HTTP_DENIED : FUSEE_HTTP_REFUSED;
	/* 501: it has no such service */
	return a->status == 501 ? FUSEE_HTTP_DENIED : fusee_http_verdict(a);
}
