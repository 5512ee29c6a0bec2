/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for a worker: by user, by process, urgent requests and small files first.
 * Users take turns, and so do the processes of a user; a user who had more than a minute's share of
 * time or bytes waits for those who had not. One thread.
 */
#ifndef WORKER_TURNS_H
#define WORKER_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TURNS_CLASSES 5 /* of sizes: each is 16 times the class before */
/* A user's share of a minute. It is no limit while no other user waits. */
#define TURNS_SHARE_NS 10000000000ull
#define TURNS_SHARE_BYTES (1ull << 30)

struct turns_item {
	struct turns_item *next;
	uint32_t uid; /* user of the process that maps the file, not the file's owner */
	pid_t pid;
	uint64_t bytes;     /* of the file on disk */
	uint32_t given_way; /* how often its inspection was ended for an urgent request */
	uint32_t urgent;    /* the highest is before all others of its process; 0: not urgent */
	bool later;         /* behind all others of its process */
};

struct turns_user;

struct turns {
	struct turns_user *first, **last; /* the next in turn first */
	uint32_t n;                       /* items */
	uint32_t max;                     /* items of one user */
};

void turns_init(struct turns *, uint32_t max);
/* Frees the users. It must be empty. */
void turns_fini(struct turns *);
/* 0; -EBUSY: the user has too many; -ENOMEM. The item is borrowed until it is taken. */
int turns_add(struct turns *, struct turns_item *);
/*
 * Removes and returns the next item; NULL: none. now: CLOCK_MONOTONIC ns. over: users above their
 * share have turns too, after all others. prefer: a user whose turn goes on, or NULL. allowed():
 * whether an item of this user may be taken now; NULL: each may.
 */
struct turns_item *turns_take(struct turns *, uint64_t now, bool over, const uint32_t *prefer,
			      bool (*allowed)(void *arg, uint32_t uid), void *arg);
/* Sets how urgent the process's first item is for which is() holds. NULL: no such item waits. */
struct turns_item *turns_hurry(struct turns *, uint32_t uid, pid_t pid, uint32_t urgent,
			       bool (*is)(const struct turns_item *, const void *arg),
			       const void *arg);
/* Adds time and bytes to what the user has had in this minute. */
void turns_charge(struct turns *, uint32_t uid, uint64_t now, uint64_t ns, uint64_t bytes);
#endif
