/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of losses: each sample due is complete, truncated or lost, and each that is not
 * complete has one reason. All code that shows losses (the summary, top, report, status, metrics,
 * profiles, the page) iterates this account and has no list of its own.
 *
 * Every figure is a number of samples, except those of stage LOSS_DELIVERY, which count profiles.
 */
#ifndef LOSS_LOSS_H
#define LOSS_LOSS_H

#include <stdint.h>

#include "base/json.h"

/* The stage at which a reason counts. */
enum loss_stage {
	LOSS_NOWHERE, /* complete */
	LOSS_TICK,    /* lost: a tick without a sample (core/events) */
	LOSS_STACK, /* truncated: a sample whose stack is incomplete (core/unwind, core/pipeline) */
	LOSS_DELIVERY, /* a profile that a sink did not take (core/delivery) */
};

/* The reasons of the core: their texts and what they mean are in loss.c. Unwinder plugins have
 * reasons of their own, which have numbers from LOSS_REASONS on in an account. */
enum loss_reason {
	LOSS_NONE, /* complete */
	LOSS_RING_FULL,
	LOSS_TIMER_SKIPPED,
	LOSS_UNFINISHED,
	LOSS_KERNEL_NOT_ALLOWED,
	LOSS_THROTTLED,
	LOSS_TRACED,
	LOSS_NOT_STOPPED,
	LOSS_WAIT_LATE,
	LOSS_HIT_DURING_ANOTHER,
	LOSS_HIT_NOT_SENT,
	LOSS_HOOK_HIT,
	LOSS_NO_MEMORY,
	LOSS_PROCESS_CHANGED,
	LOSS_CODE_CHANGED,
	LOSS_MADE_CHANGED,
	LOSS_NOT_COPIED,
	LOSS_ENDLESS,
	LOSS_BACKWARDS,
	LOSS_COPY_FULL,
	LOSS_COPY_SHORT,
	LOSS_NO_TABLE_YET,
	LOSS_FILE_NOT_READABLE,
	LOSS_NO_TABLE,
	LOSS_CALLER_NOT_CODE,
	LOSS_RETURN_REPLACED,
	LOSS_CODE_NOT_MAPPED,
	LOSS_MAPPINGS_NOT_READ,
	LOSS_TOO_MANY_MAPPINGS,
	LOSS_TOO_DEEP,
	LOSS_PROFILE_FULL,
	LOSS_NO_LANGUAGE,
	LOSS_UNRECORDED,
	LOSS_NO_REGISTERS,
	LOSS_32_BIT,
	LOSS_UNNAMED,
	LOSS_QUEUE_FULL,
	LOSS_REFUSED,
	LOSS_ENDED,
	LOSS_NOT_BUILT,
	LOSS_SPOOL_FULL,
	LOSS_TOO_OLD,
	LOSS_DAMAGED,
	LOSS_REASONS
};

#define LOSS_SAMPLERS 8u /* of plugins, at once */
#define LOSS_MAX 96u     /* reasons in an account, those of plugins included */

/* The reason's text for users and metrics, which never changes after a release. Static. */
const char *loss_text(enum loss_reason);
enum loss_stage loss_stage(enum loss_reason);

/* "lost", "truncated", "not delivered"; "complete" for LOSS_NOWHERE. Static. */
const char *loss_stage_text(enum loss_stage);

struct loss_count {
	const char *text;
	enum loss_stage stage;
	uint64_t n;
};

/* After loss_account_init(): due == complete + truncated + lost. Iterate counts[1 .. n - 1]; those
 * that are 0 are included. */
struct loss_account {
	uint64_t due, complete, truncated, lost;
	struct loss_count counts[LOSS_MAX]; /* by reason; [LOSS_NONE]: complete */
	uint32_t n;
	/* Of LOSS_WAIT_LATE, by the number of the sampler: how many, and what they represent. */
	uint64_t late[LOSS_SAMPLERS], late_weight[LOSS_SAMPLERS];
};

/* Starts an account in which nothing was due. */
void loss_account_init(struct loss_account *);
/* The number of the reason with this text, which is added if the account does not have it; the text
 * must live as long as the account and its copies. LOSS_UNNAMED: the account is full. */
uint32_t loss_account_reason(struct loss_account *, const char *text);
/* Adds n samples (or profiles) with this reason; LOSS_NONE: complete. */
void loss_account_add(struct loss_account *, uint32_t reason, uint64_t n);
/* Counts at most n samples of the reason `from` as `to`, which is of the same stage. */
void loss_account_move(struct loss_account *, enum loss_reason from, enum loss_reason to,
		       uint64_t n);
/* Sets all figures to 0; the reasons keep their numbers. */
void loss_account_clear(struct loss_account *);
/* Appends the counts of one stage for people, "12 ring full, 3 timer skipped"; nothing if all are
 * 0. */
void loss_account_list(const struct loss_account *, enum loss_stage, struct buf *);
/* The same as an object, {"ring full": 12, ..}, which includes the core's reasons of ticks and
 * delivery with 0. */
void loss_account_json(const struct loss_account *, enum loss_stage, const char *name,
		       struct json *);
#endif
