/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from debuginfod servers, where the user named some: without a server nothing here
 * does anything. A file is requested by its build ID, in the background; a process of its own, the
 * fetcher, has the network and a folder of the cache, and no other right. What came must have the
 * build ID that was requested. It stays in the folder, where later recordings find it without a
 * server.
 *
 * Four processes at most, each for one file. A process that does not end in time is killed. After
 * FETCHER_FAILURES files in a row that a server could not be reached for, or where this machine
 * lacks what a fetcher needs, further requests fail at once for FETCHER_PAUSE_S, with that reason.
 *
 * For one thread. NULL as fetcher is one without servers.
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
	FETCHER_PENDING, /* requested, and not here yet */
	FETCHER_HERE,    /* in the folder */
	FETCHER_MISSING, /* the servers do not have it */
	FETCHER_FAILED,  /* a server, what it sent, or this machine is at fault: `text` says how */
	FETCHER_LATE,    /* no answer in time */
};

/* A file that was requested. */
struct fetcher_file {
	const char *name; /* of the file that it is for: a path of a target, not trusted */
	enum fetcher_state state;
	const char *text; /* of FAILED and LATE: a phrase, without control characters */
	uint64_t bytes;   /* of HERE: that came over the network; 0: it was there before */
};

/* Whether a list of servers, separated by blanks or commas, can be used: http:// or https://
 * without user or password. NULL; or what is wrong with it, a static phrase. */
const char *fetcher_wrong_servers(const char *list);

/* folder: is made where it is missing; NULL: nothing can be fetched. Starts nothing. 0 or -ENOMEM.
 */
int fetcher_new(struct fetcher **ret, const char *folder);
/* Kills the processes. NULL is fine. */
void fetcher_free(struct fetcher *);
/*
 * From now on these servers are requested (checked by fetcher_wrong_servers()); "": none. file_ms:
 * for one file. arrived() is called, from fetcher_dispatch(), for each file that came. 0; -ENOENT:
 * there is no folder; -EPERM: others can write to the folder; -errno.
 */
int fetcher_set_servers(struct fetcher *, const char *servers, uint32_t file_ms,
			void (*arrived)(void *arg, const uint8_t *build_id, uint32_t len),
			void *arg);
bool fetcher_is_on(const struct fetcher *);
/* Requests the debug file of this build ID, of a file of this name, unless that was done already. A
 * file that servers did not have, or that failed, is requested again after an hour; a file that was
 * not requested of any server, after FETCHER_PAUSE_S. */
enum fetcher_state fetcher_request(struct fetcher *, const uint8_t *build_id, uint32_t len,
				   const char *name);
/* Opens what is in the folder, of a file of this name: a descriptor, the caller's, or -ENOENT. The
 * content is a server's. */
int fetcher_open(struct fetcher *, const uint8_t *build_id, uint32_t len, const char *name);
/* Why this machine can fetch no file, and what to do about it: a phrase without control characters,
 * valid until fetcher_dispatch(). Each reason once; NULL: there is none, or it was returned. */
const char *fetcher_obstacle(struct fetcher *);
/* A worker did not survive a fetched file, or found it inconsistent. */
void fetcher_count_refused(void);
uint32_t fetcher_pending(const struct fetcher *);
/* What is pending is not waited for any more: its state is FETCHER_LATE. */
void fetcher_give_up(struct fetcher *);
/* Calls each() for every file that was requested. */
void fetcher_each(const struct fetcher *, void (*each)(void *arg, const struct fetcher_file *),
		  void *arg);
/* An epoll descriptor: readable when fetcher_dispatch() has something to do. */
int fetcher_fd(const struct fetcher *);
void fetcher_dispatch(struct fetcher *); /* never waits */

/* The fetcher process: one file, then it ends. For the hidden command `fusee fetcher FD`. 0 or
 * -errno. */
int fetcher_run(int sock);
#endif
