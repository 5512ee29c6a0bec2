/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches debug files from debuginfod servers that the user named; without servers these functions
 * do nothing. A file is requested by its build ID, in the background, by a process of its own, the
 * fetcher, which has access only to the network and to a folder of the cache. A received file must
 * have the requested build ID. It stays in the folder, where later recordings find it without a
 * server.
 *
 * Four processes at most, each for one file. A process that does not end in time is killed. If no
 * server could be reached for FETCHER_FAILURES files in a row, or if this machine lacks what a
 * fetcher needs, further requests fail at once for FETCHER_PAUSE_S, with this reason.
 *
 * For one thread. A NULL fetcher has no servers.
 */
#ifndef FETCHER_FETCHER_H
#define FETCHER_FETCHER_H

#include <stdbool.h>
#include <stdint.h>

#define FETCHER_FAILURES 3u
#define FETCHER_PAUSE_S 300u
#define FETCHER_MAX_SERVERS 2048u               /* bytes of the list of servers */
#define FETCHER_MAX_BYTES (INT64_C(2) << 30)    /* of a file */
#define FETCHER_FOLDER_BYTES (INT64_C(8) << 30) /* of the folder */

struct fetcher;

enum fetcher_state {
	FETCHER_OFF,     /* no server, or no build ID: nothing is requested */
	FETCHER_PENDING, /* requested, not received yet */
	FETCHER_HERE,    /* in the folder */
	FETCHER_MISSING, /* the servers do not have it */
	FETCHER_FAILED,  /* because of a server, its file or this machine: see `text` */
	FETCHER_LATE,    /* no answer in time */
};

/* A file that was requested. */
struct fetcher_file {
	const char *name; /* the file whose debug file it is: a path of a target, not trusted */
	enum fetcher_state state;
	const char *text; /* of FAILED and LATE: a phrase, without control characters */
	uint64_t bytes;   /* of HERE: received over the network; 0: it was in the folder already */
};

/* Whether a list of servers, separated by blanks or commas, can be used: http:// or https://
 * without user or password. NULL, or a static phrase about the error. */
const char *fetcher_wrong_servers(const char *list);

/* folder: is created if missing; NULL: nothing can be fetched. Starts no process. 0 or -ENOMEM.
 */
int fetcher_new(struct fetcher **ret, const char *folder);
/* Kills the processes. NULL is fine. */
void fetcher_free(struct fetcher *);
/*
 * Sets the servers (checked by fetcher_wrong_servers()); "": none. file_ms: for one file. arrived()
 * is called, from fetcher_dispatch(), for each received file. 0; -ENOENT: there is no folder;
 * -EPERM: others can write to the folder; -errno.
 */
int fetcher_set_servers(struct fetcher *, const char *servers, uint32_t file_ms,
			void (*arrived)(void *arg, const uint8_t *build_id, uint32_t len),
			void *arg);
bool fetcher_is_on(const struct fetcher *);
/* Requests the debug file of a file of this name and build ID, unless it is requested already. A
 * file that no server has, or that failed, is requested again after an hour; a file that was not
 * requested because of a pause, after FETCHER_PAUSE_S. */
enum fetcher_state fetcher_request(struct fetcher *, const uint8_t *build_id, uint32_t len,
				   const char *name);
/* Opens the debug file in the folder, for a file of this name: a descriptor, owned by the caller,
 * or -ENOENT. Its content comes from a server. */
int fetcher_open(struct fetcher *, const uint8_t *build_id, uint32_t len, const char *name);
/* Why this machine can fetch no file, and what helps: a phrase without control characters, valid
 * until fetcher_dispatch(). Returns each reason once; NULL: there is no new reason. */
const char *fetcher_obstacle(struct fetcher *);
/* Counts a fetched file that crashed a worker, or that a worker found inconsistent. */
void fetcher_count_refused(void);
uint32_t fetcher_pending(const struct fetcher *);
/* Ends the wait for pending files: their state becomes FETCHER_LATE. */
void fetcher_give_up(struct fetcher *);
/* Calls each() for every file that was requested. */
void fetcher_each(const struct fetcher *, void (*each)(void *arg, const struct fetcher_file *),
		  void *arg);
/* An epoll descriptor: readable when fetcher_dispatch() has something to do. */
int fetcher_fd(const struct fetcher *);
void fetcher_dispatch(struct fetcher *); /* never waits */

/* Runs the fetcher process, which fetches one file and ends. For the hidden command `fusee fetcher
 * FD`. 0 or -errno. */
int fetcher_run(int sock);
#endif
