/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer of an OTLP receiver means. */
#ifndef OTLP_ANSWER_H
#define OTLP_ANSWER_H

#include <fusee/http.h>

#define ANSWER_WORDS 512 /* bytes of a sentence with its NUL */

struct answer {
	enum fusee_http_verdict verdict;
	/* Profiles that the server says it did not take, of those that it answered 2xx to. */
	uint32_t rejected;
	/* The server's words with a hint, or a warning of a request that was taken; "": none. */
	char words[ANSWER_WORDS];
};

/* profiles: in the request. */
void answer_read(const struct fusee_http_answer *, uint32_t profiles, struct answer *);
#endif
