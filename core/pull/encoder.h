/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that encodes profiles as pprof files, so that a large profile does not block the control
 * thread. Calls are for the control thread. */
#ifndef PULL_ENCODER_H
#define PULL_ENCODER_H

#include "base/buf.h"
#include "net/loop.h"
#include "profile/builder.h"

struct pull_encoder;

struct pull_encoding {
	struct pull_encoding *next;
	struct builder *builder; /* owns the profile; freed once it is encoded */
	const struct fusee_profile *profile;
	struct buf bytes;        /* the file, gzip */
	int err;                 /* 0 or -errno */
	void (*done)(void *arg); /* on the loop's thread; not after pull_encoder_free() */
	void *arg;
};

int pull_encoder_new(struct pull_encoder **ret, struct loop *); /* 0 or -errno */
/* The encoding is borrowed until done(), or pull_encoder_free(). */
void pull_encoder_add(struct pull_encoder *, struct pull_encoding *);
/* Waits for the current encoding. NULL is fine. */
void pull_encoder_free(struct pull_encoder *);
/* Frees builder and bytes. */
void pull_encoding_fini(struct pull_encoding *);
#endif
