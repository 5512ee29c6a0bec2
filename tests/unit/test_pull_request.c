// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/pull
/* core/agent/pull_request: what clients of /debug/pprof/profile ask for. */

#include "pull/request.h"
#include "test.h"

static struct pull_request request;
static char error[256];

static void check_wrong(const char *query, const char *sentence)
{
	error[0] = '\0';
	CHECK_INT(pull_request_parse(&request, query, error), -EINVAL);
	CHECK_STR(error, sentence);
}

static void check_good(const char *query, uint32_t seconds, uint32_t selectors)
{
	CHECK_INT(pull_request_parse(&request, query, error), 0);
	CHECK_INT(request.seconds, seconds);
	CHECK_INT(request.nselectors, selectors);
}

TEST(seconds)
{
	check_good("", 30, 0);
	check_good("seconds=1", 1, 0);
	check_good("seconds=600&debug=0", 600, 0);
	check_good("seconds=10&seconds=10&seconds=10", 10, 0); /* as Parca asks after a reload */
	check_wrong("seconds=0", "seconds=0: that is an integer from 1 to 600\n");
	check_wrong("seconds=601", "seconds=601: that is an integer from 1 to 600\n");
	check_wrong("seconds=", "seconds=: that is an integer from 1 to 600\n");
	check_wrong("seconds=-1", "seconds=-1: that is an integer from 1 to 600\n");
	check_wrong("seconds=1.5", "seconds=1.5: that is an integer from 1 to 600\n");
	check_wrong("seconds=4294967297", "seconds=4294967297: that is an integer from 1 to 600\n");
	check_wrong("debug=1", "debug=1: profiles are pprof files, not text\n");
}

TEST(wrong_queries)
{
	char many[PULL_QUERY + 8] = "";

	check_wrong("a=%zz", "the query has a wrong escape: '%' and two hexadecimal digits, not "
			     "00\n");
	check_wrong("=x", "'=x': a label has no name\n");
	check_wrong("unit=a&unit=b",
		    "label 'unit' is selected twice: a process has one value of it\n");
	check_wrong("seconds=%1b[31m", "seconds=\357\277\275[31m: that is an integer from 1 to "
				       "600\n");
	for (int i = 0; i < 17; i++)
		sprintf(many + strlen(many), "&l%d=x", i);
	check_wrong(many, "'l16': more than 16 labels are selected\n");
	for (int i = 0; i < 65; i++)
		strcpy(many + 2 * i, "a&");
	check_wrong(many, "the query has more than 64 parameters\n");
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	check_wrong(many, "the query is too long\n");
	/* no sentence is longer than its buffer */
	many[PULL_QUERY - 1] = '\0';
	memcpy(many, "seconds=", 8);
	CHECK_INT(pull_request_parse(&request, many, error), -EINVAL);
	CHECK(strlen(error) < 200);
}

#define LABEL(k, v)                                                       \
	{                                                                 \
		.key = {(k), sizeof(k) - 1}, .str = {(v), sizeof(v) - 1 } \
	}

static bool selects(const char *query)
{
	static const struct fusee_label labels[] = {
		LABEL("process", "nginx"), LABEL("unit", "web.service"), LABEL("empty", "")};

	CHECK_INT(pull_request_parse(&request, query, error), 0);
	return pull_request_selects(&request, labels, 3);
}

TEST(selectors)
{
	CHECK(selects(""));
	CHECK(selects("process=nginx"));
	CHECK(selects("process=nginx&seconds=5&unit=web%2eservice"));
	CHECK(!selects("process=nginx&unit=db.service"));
	CHECK(!selects("process=ngin"));
	CHECK(!selects("process=nginxx"));
	CHECK(!selects("proces=nginx"));
	CHECK(!selects("process="));
	CHECK(selects("pod="));
	CHECK(selects("empty="));
	CHECK(!selects("pod=x"));
}

TEST(unknown_labels)
{
	CHECK_INT(pull_request_parse(&request, "unti=a", error), 0);
	pull_request_unknown(&request.selectors[0], error);
	CHECK_STR(error, "no process that is profiled has a label 'unti': fusee ctl targets lists "
			 "them\n");
}
