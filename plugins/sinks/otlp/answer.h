/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of an OTLP receiver's answer. */
#ifndef OTLP_ANSWER_H
#define OTLP_ANSWER_H

#include <fusee/http.h>

#define ANSWER_WORDS 512 /* bytes of a sentence with its NUL */

struct answer {
	enum fusee_http_verdict verdict;
	/* The number of profiles that the server rejected although it answered 2xx. */
	uint32_t rejected;
	/* The server's words with a hint, or a warning of a request that was taken; "": none. */
	char words[ANSWER_WORDS];
};

/* profiles: in the request. */
void answer_read(const struct fusee_http_answer *, uint32_t profiles, struct answer *);
#endif
