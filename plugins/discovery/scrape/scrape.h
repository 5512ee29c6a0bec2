/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that servers make of themselves: the options of an instance, and its scrapes. */
#ifndef SCRAPE_H
#define SCRAPE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <fusee/http.h>

#define SCRAPES_MAX 256u /* of an instance: targets times paths */
#define SCRAPE_LABELS 32u
#define SCRAPE_WHY 512    /* bytes of a reason with its NUL */
#define SCRAPE_TEXT 4096u /* bytes of a label, as the core takes them */
#define SCRAPE_SAID 4u
#define SCRAPES_MEMORY (256ull << 20) /* bytes of all answers of an instance at a time */

struct scrape;

struct scrapes {
	struct fusee_self self;
	/* options */
	const char *job;
	struct fusee_table targets, paths, params, labels;
	int64_t scheme;
	uint64_t interval, seconds, max_bytes;
	struct fusee_http_options http; /* url: unused */

	struct scrape **list;
	uint32_t n;
	uint32_t nsaid, said[SCRAPE_SAID]; /* hashes of what init() has logged */

	/* of all threads */
	_Atomic uint64_t bytes;  /* of answers, until they are handed over */
	pthread_mutex_t handing; /* held while a thread hands a profile over */
	atomic_bool ended;       /* nothing is handed over any more */
};

/* Whether a label may have this text: printable UTF-8 of at most SCRAPE_TEXT bytes. */
bool scrape_is_text(const char *);

/* ---- address: where a profile is, and what it is ---- */

struct address {
	char *base;          /* "http://host:port/prefix" */
	char *instance;      /* "host:port" */
	char *path, *query;  /* "/debug/pprof/profile", "seconds=10"; query "": none */
	const char *profile; /* the last part of the path */
	const char *kind;    /* of struct fusee_profile */
	uint64_t lasts_ns;   /* the time that the server measures for, of its query */
};

/* 0; -EINVAL after host->fail(); -ENOMEM. address_free() in any case. */
int address_make(struct address *, const struct scrapes *, const char *target, const char *path);
void address_free(struct address *);

/* ---- scrape: one address, requested each interval by a thread of its own ---- */

/* Does not begin yet. 0 or -errno after host->fail(). In init(). */
int scrape_new(struct scrape **ret, struct scrapes *, const char *target, const char *path);
int scrape_begin(struct scrape *);   /* 0 or -errno */
void scrape_cancel(struct scrape *); /* its thread ends soon */
/* Copies why the last request failed. unsaid: only if this has not been copied yet. false: it did
 * not fail, or that. */
bool scrape_failure(struct scrape *, bool unsaid, char why[SCRAPE_WHY]);
void scrape_join(struct scrape *); /* waits for its thread, if it has begun */
void scrape_free(struct scrape *); /* the same, first. NULL is fine */
/* How long to wait until the next request begins, after `failures` of them in a row: the interval,
 * doubled at each, up to ten minutes or an interval that is longer; or what the server named. */
uint64_t scrape_pause(uint64_t interval, uint32_t failures, uint64_t named);
#endif
