/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket of Amazon S3, or of a server that speaks its protocol. An object exists only after its
 * upload, and is then complete. Functions are for the instance's own thread.
 */
#ifndef PARQUET_BUCKET_H
#define PARQUET_BUCKET_H

#include <fusee/http.h>

#define BUCKET_HEADERS 16u /* of the option `headers`, at most */

/* Texts are "" if unset. All of it is borrowed until bucket_close(). */
struct bucket_options {
	const char *bucket;           /* s3://NAME/PREFIX */
	const char *endpoint;         /* the server; "": Amazon's of the region */
	const char *region;           /* "": of the environment */
	const char *credentials_file; /* "": the environment has the keys */
	const struct fusee_http_options *http;
};

struct bucket {
	const struct fusee_self *self;
	struct fusee_http_options http; /* url: the server's; without headers */
	struct fusee_table headers;     /* of the option */
	const char *credentials_file;
	struct fusee_http *client;
	uint64_t part_bytes; /* a larger file is sent in parts of that size */

	char *name, *region, *url, *host; /* owned */
	char *above;                      /* owned; the path of `url`: "" or "/storage" */
	char *path;                       /* owned; encoded, after `above`: "/NAME/PREFIX" */
	char *prefix;                     /* owned; as it is: "PREFIX/", or "" */
	bool named, reads; /* named: `host` has the bucket's name; reads: for sentences */
	char *page;        /* owned; the answer to a list request; NULL: none yet */
};

/* Checks the options and reads the keys once; nothing is sent. 0, or -errno after host->fail();
 * *ret is then NULL. */
int bucket_open(struct bucket **ret, const struct fusee_self *, const struct bucket_options *);
void bucket_close(struct bucket *); /* NULL is valid */
/* [any thread] As fusee_http_cancel(). */
void bucket_cancel(struct bucket *);

/* A file without a name, for data that is only sent: in the folder, or if that is "" or not
 * writable, in TMPDIR or /tmp. A descriptor or -errno. */
int bucket_temporary(const char *folder);

/* Sends the first bytes of a file as the object PREFIX/key, which is replaced. 0, or after
 * host->fail(): -EAGAIN, possibly after host->retry_after(): a later attempt may succeed; another
 * -errno: it cannot succeed. */
int bucket_put(struct bucket *, struct fusee_sink_out *, const char *key, int fd, uint64_t bytes);

/* ---- read.c: temporary failures are tried again for a while ---- */

/* As list() and read() of struct fusee_sink_ops. */
int bucket_list(struct bucket *, const struct fusee_listing *);
int64_t bucket_read(struct bucket *, const char *key, uint64_t at, void *to, uint64_t n,
		    uint64_t *all);

/* ---- request.c ---- */

struct bucket_request {
	uint32_t flags;          /* enum fusee_http_flags: FUSEE_HTTP_PUT, _DELETE, _GET, or POST */
	bool begins;             /* an object: with all headers of the option */
	const char *key, *query; /* key: NULL: the bucket itself; query: encoded, in alphabetical
				  * order; "" for none */
	struct fusee_str body;
	const char *range; /* of an object: "bytes=0-99"; NULL: all of it */
	void *into;        /* as of struct fusee_http_request */
	uint64_t room;
};

/* Signs and sends a request, as fusee_http_send(). -EAGAIN: there are no keys now. */
int bucket_send(struct bucket *, const struct bucket_request *, struct fusee_http_answer *);

/* ---- answer.c ---- */

/* The text of the first <name> in XML; empty: there is none. */
struct fusee_str bucket_xml(struct fusee_str xml, const char *name);
/* Interprets an answer as fusee_http_result(), also without a delivery; -ENOENT: there is no such
 * object. For a 2xx only if the body has an error, as the answer to completing an upload can. */
int bucket_result(struct bucket *, struct fusee_sink_out *, const struct fusee_http_answer *);
#endif
