// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/config
/* Every allocation failed in turn: an error that says so, or all is well; never a crash or a leak
 * (build with SANITIZER=address). */
#include "lib/config.h"
#include "lib/faults.h"

static const char script[] =
	"sample.cpu { hz = 29, threads = true } metrics {} control { path = '/c' }\n"
	"discover.keeper { url = 'u' } unwind.snake { enabled = false } unknown 'drop'\n"
	"local a = sink.box { dir = '/a', omit = { 'pid', 'tid' }, headers = { x = '1', y = '2' "
	"},\n"
	"  token = 't', level = 3, relabel = { { action = 'labeldrop', regex = 'pid|(tid)' } } }\n"
	"relabel { { source_labels = { 'a', 'b' }, target_label = 'c' } }\n"
	"policy(function(t)\n"
	"  if t.labels.process == 'none' then return false end\n"
	"  return { hz = 97, labels = { team = 'a' .. t.labels.process }, to = { a } }\n"
	"end)\n";

static const char wrong_script[] =
	"sample.cpu { hz = 'x' } sink.bxo {} unwind.snke {} metrics { listen = 'x' }\n"
	"sink.box { dri = '/a', level = 10, omit = { 5 }, headers = { 'x' }, 7 } policy(5)\n"
	"relabel { { action = 'drpo' }, { regex = '(', target_label = 'x' }, 7 }\n"
	"x = 1\n";

static int ask(const struct plan *p)
{
	static const struct fusee_label l = {.key = {"process", 7}, .str = {"cat", 3}};
	struct policy_answer d;
	char *text;
	int r = lua_policy_ask(p, &l, 1, &d, &text);

	CHECK(d.profile && (r ? d.hz == 29 : d.hz == 97));
	CHECK(!r || !text || *text);
	free(text);
	return r;
}

TEST_FOR(a_script, 900)
{
	struct plan_errors errors;
	unsigned long rounds = 0;

	config_write(script);
	for (faults_from(0); faults_next(); rounds++) {
		struct plan *p = NULL;
		struct buf b = {0};
		int r = plan_from_script(&p, "s.lua", &config_folder, &errors);
		bool failed = faults_happened();

		CHECK(!r == !!p);
		if (!r) {
			int answered = ask(p), json = plan_json(p, &b);

			CHECK(!answered || faults_happened());
			CHECK(!json || json == -ENOMEM);
			faults_stop();
			CHECK_INT(ask(p), 0); /* once there is memory again */
		} else {
			CHECK(failed);
		}
		faults_stop();
		buf_fini(&b);
		plan_errors_fini(&errors);
		plan_free(p);
	}
	CHECK(rounds > 200);
}

TEST_FOR(a_wrong_script, 900)
{
	struct plan_errors errors;
	unsigned long rounds = 0;
	uint32_t total = 0;

	config_write(wrong_script);
	for (faults_from(0); faults_next(); rounds++) {
		struct plan *p = NULL;
		int r = plan_from_script(&p, "s.lua", &config_folder, &errors);

		CHECK(r < 0 && !p);
		CHECK(r == -ENOMEM || errors.n);
		total = errors.n;
		plan_errors_fini(&errors);
	}
	faults_stop();
	CHECK_INT(total, 14);
	CHECK(rounds > 200);
}

TEST_FOR(flags, 900)
{
	const char *sinks[] = {"box:dir=/a,omit=pid,tid,headers=a=1,b=2,level=3", "box:dir=/b"};
	const char *wrong[] = {"box:dir=/a,omit=pid,tid,headers=a=1,b=2,level=30", "bxo"};
	struct plan_flags f = {.nsinks = 2, .hz = 29, .listen = "127.0.0.1:1", .control = "/c"};
	struct plan_errors errors;

	for (int w = 0; w < 2; w++) {
		unsigned long rounds = 0;
		int r = 0;

		f.sinks = w ? wrong : sinks;
		for (faults_from(0); faults_next(); rounds++) {
			struct plan *p = NULL;

			r = plan_from_flags(&p, &f, &config_folder, &errors);
			CHECK(!r == !!p);
			CHECK(!r || r == -ENOMEM || (r == -EINVAL && errors.n));
			plan_errors_fini(&errors);
			plan_free(p);
		}
		faults_stop();
		CHECK_INT(r, w ? -EINVAL : 0);
		CHECK(rounds > 40);
	}
}
