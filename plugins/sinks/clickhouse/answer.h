/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of ClickHouse. */
#ifndef CLICKHOUSE_ANSWER_H
#define CLICKHOUSE_ANSWER_H

#include <fusee/http.h>

enum answer_code { ANSWER_UNKNOWN_TABLE = 60, ANSWER_UNKNOWN_DATABASE = 81 };

struct answer {
	enum fusee_http_verdict verdict;
	uint32_t code; /* of ClickHouse's exception; 0: none */
	char words[FUSEE_HTTP_WORDS + 80];
};

/* silent: a successful answer has no body, as for an INSERT; a missing table is then a refusal,
 * after which the sink queries the tables. */
void answer_read(const struct fusee_http_answer *, bool silent, struct answer *);
#endif
