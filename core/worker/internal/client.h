/* SPDX-License-Identifier: Apache-2.0 */
/* What worker.c (the object), client.c, request.c (requests), names.c (tables of names), pool.c
 * (processes) and client_step.c (steps) share. For no other file. */
#ifndef WORKER_CLIENT_H
#define WORKER_CLIENT_H

#include "base/background.h"
#include "base/hashmap.h"
#include "base/poller.h"
#include "inspection/cache.h"
#include "worker/internal/child.h"
#include "fetcher/fetcher.h"
#include "opener/opener.h"
#include "inspection/owner.h"
#include "worker/internal/turns.h"
#include "worker/internal/refusals.h"
#include "worker/worker.h"

#define POOL_SLOTS 8
#define POOL_DYING 16

#define INSPECT_MS 5000u /* CPU time for inspect() of one unwinder */

/* What a process works on. Steps never wait for inspections, nor clean files for other files, nor
 * small clean files for inspections of large files, nor these for what was omitted of one. */
enum client_lane {
	LANE_CLEAN,
	LANE_OTHERS,
	LANE_LARGE,
	LANE_REST,
	LANE_STEP_CLEAN,
	LANE_STEP_OTHERS,
	LANES
};

/* The key of an inspection in the cache. */
struct client_cached {
	bool known;
	uint8_t key[32];
};

struct client_request {
	struct turns_item item; /* first, as pointers to it are cast */
	uint64_t id;
	enum client_lane lane;
	struct owner_file file;
	int fds[3]; /* file, debug file, dwz file; -1: none; borrowed */
	char *name; /* for messages */
	bool keyed; /* the key is known */
	uint8_t key[32];
	struct client_cached cached;
	uint64_t skip; /* unwinders that do not inspect it */
	bool brief;    /* an inspection that may omit what takes long */
	uint32_t deaths, shortages;
	uint64_t not_before; /* CLOCK_MONOTONIC ns: it is retried after a lack of memory */
	bool (*needed)(void *arg);
	void *arg;
	worker_inspected *inspected; /* one of four; the others are NULL */
	worker_symbolized *symbolized;
	worker_stepped *stepped;
	worker_named *named;
	uint8_t names_key[32]; /* of the table that is made */
	void *payload;         /* addresses, or a stack copy */
	uint64_t len;          /* bytes of it */
	bool inlines;
	struct protocol_request *step; /* of a step */
};

/* A place for a process. Times are CLOCK_MONOTONIC, ns. */
struct slot {
	struct child child;
	enum client_lane lane;
	bool spare; /* not for users above their share */
	bool used;  /* the process has read files of `owner` */
	struct owner owner;
	uint32_t user;                         /* of the last request */
	struct client_request *current, *next; /* sent; to be sent next */
	int unwinder;                          /* whose inspect() runs; -1: none */
	char unwinder_name[32];
	const char *reason; /* why the agent ends the process; NULL: it ended by itself */
	bool timed_out;
	bool gives_way; /* it is ended for an urgent request; `current` is to be queued again */
	uint64_t sent_ns, deadline; /* of `current` */
	uint64_t inspect_ns;        /* CPU time that inspect() of the unwinder may take */
	uint64_t began_ns, cpu_ns;  /* when it began; the process's CPU time then */
	uint64_t turn_ns;           /* when the turn of `user` began */
	uint64_t idle_since;
	uint32_t requests; /* of this process */
};

/* A process that the agent ends, and whose slot is free again. */
struct dying {
	struct child child; /* pid 0: none */
	uint32_t user;      /* whose file it read last */
	bool stuck;
};

struct worker {
	char **arguments; /* of `fusee worker`, behind its memory limit; ends with NULL */
	const struct plugin_set *unwinders;
	uint64_t memory_limit; /* bytes */
	uint32_t idle_ms, request_ms;
	struct cache *cache; /* NULL: none */
	/* Tables of names that were requested, by the start of their keys: when. See names.c. */
	struct hashmap names;
	uint64_t stamp; /* of this program, for the keys of tables */
	struct refusals refusals;
	/* The text in the cache that keeps refusals after a restart. Its name has the stamp, as
	 * another version of fusee may survive such files. */
	char refusals_name[32];
	struct owner_devices devices;
	struct output_limit output_limit;
	struct opener *opener;   /* NULL: none */
	struct fetcher *fetcher; /* NULL: none yet */
	char *fetch_folder;      /* NULL: there is no cache that can be trusted */
	struct background *background;
	struct poller poller;
	uint64_t next_id;
	uint32_t pending; /* as worker_pending() */
	bool changed;     /* requests were added */
	bool warned;      /* that a process cannot prepare itself */
	struct client_request *delayed;
	struct turns queues[LANES];
	struct slot slots[POOL_SLOTS];
	struct dying dying[POOL_DYING];
};

/* pool.c */
void pool_init(struct worker *);
/* Kills all processes, and waits for a second at most. */
void pool_stop(struct worker *);
/* Starts the slot's process unless it runs. 0 or -errno. */
int pool_start(struct worker *, struct slot *);
/* Ends the process; reason: why, static; NULL: it ends by itself. pool_reap() says when. */
void pool_end(struct worker *, struct slot *, const char *reason);
/* Ends an idle process and frees its slot at once. false: too many processes are dying. */
bool pool_retire(struct worker *, struct slot *);
/* Looks after processes that are being ended. Calls ended() when a slot is free again: its process
 * has ended, or does not end when it is killed and is dying. */
void pool_reap(struct worker *, void (*ended)(struct worker *, struct slot *, const char *why));
/* inspect() of an unwinder begins, which may take this CPU time. */
void pool_inspect_begins(struct slot *, uint32_t ms);
/* Whether the slot's request has exceeded its time. inspect() that got too little of the CPU goes
 * on, with a new deadline, for up to four times its time; but not if it uses less than a 16th of a
 * CPU. */
bool pool_is_late(struct slot *, uint64_t now);
/* How long the request may take until the worker's next message. */
uint32_t pool_time_limit_ms(const struct worker *, const struct client_request *);
/* Ends the process that makes other inspections of this lane and user, for an urgent request. */
void pool_give_way(struct worker *, const struct client_request *urgent);
/* Logs what the processes print. */
void pool_read_output(struct worker *);
/* Whether too many processes that read the user's files do not end. Its files are not read then. */
bool pool_is_stuck(const struct worker *, uint32_t user);
/* Sets the timer to the next time limit, retry or idle exit. */
void pool_set_timer(struct worker *);

/* client.c: fails all requests. */
void client_cancel_all(struct worker *);

/* request.c. client_enqueue() frees the request where the result is not 0. */
int client_request_new(struct worker *, struct client_request **ret, int fd, const char *name,
		       const struct worker_requester *, void *arg);
void client_request_free(struct client_request *);
int client_enqueue(struct worker *, struct client_request *);

/* worker.c: the pid of a worker that runs, of a busy worker if there is any; 0: none runs. For
 * tests.
 */
int worker_pid(const struct worker *);

/* names.c: keeps the table that a worker has made. 0 or -errno: it is malformed. */
int client_names_take(struct worker *, const struct client_request *, const struct protocol_reply *,
		      int fd);
/* Calls the request's callback. err: 0 or -errno. */
void client_names_finish(struct worker *, struct client_request *, int err);

/* client_step.c: calls the request's callback with the reply. */
void client_step_finish(struct client_request *, const struct protocol_reply *);
#endif
