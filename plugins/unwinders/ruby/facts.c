/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include "words.h"

/* Offsets that the step has as constants. */
#define ISEQ_BODY 16
#define BODY_PATH 64
#define BODY_LABEL 80
#define BODY_FIRST_LINE 88
#define CONTEXT_FRAME 16
#define FRAME_SELF 24

struct fusee_doubt ruby_check_facts(const struct fusee_unwinder_host *host, uint64_t file,
				    const uint32_t *words)
{
	/* each of these functions, or a function that it calls, uses an offset that the
	 * step uses */
	const struct {
		const char *function;
		enum fusee_use how;
		uint32_t offset;
	} facts[] = {
		{"rb_iseq_path", FUSEE_USE_VALUE, ISEQ_BODY},
		{"rb_iseq_path", FUSEE_USE_VALUE, BODY_PATH},
		{"rb_iseq_label", FUSEE_USE_VALUE, BODY_LABEL},
		{"rb_iseq_first_lineno", FUSEE_USE_VALUE, BODY_FIRST_LINE},
		{"rb_iseq_method_name", FUSEE_USE_VALUE, words[RUBY_LOCAL_ISEQ]},
		{"rb_iseq_line_no", FUSEE_USE_VALUE, words[RUBY_INSNS]},
		{"rb_profile_frames", FUSEE_USE_ADDRESS, words[RUBY_FRAME_SIZE]},
		{"rb_current_receiver", FUSEE_USE_VALUE, CONTEXT_FRAME},
		{"rb_current_receiver", FUSEE_USE_VALUE, FRAME_SELF},
		{"rb_string_value_ptr", FUSEE_USE_ADDRESS, words[RUBY_STRING_EMBED]},
	};

	for (uint32_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		int used = fusee_function_uses(host, file, facts[i].function, facts[i].how,
					       facts[i].offset, 0);

		if (used <= 0)
			return (struct fusee_doubt){facts[i].function, facts[i].offset, used < 0};
	}
	return (struct fusee_doubt){NULL, 0, 0};
}
