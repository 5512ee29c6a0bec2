/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as bytes and back, with all that a struct fusee_profile has: the payload of a spool's
 * record. docs/internals/spool.md describes the bytes. [any thread]
 */
#ifndef SPOOL_PROFILE_H
#define SPOOL_PROFILE_H

#include <stddef.h>

#include <fusee/profile.h>

#include "base/buf.h"

/* A decoded profile, with the memory that it points into. */
struct spool_profile;

/* Appends the profile's bytes. 0 or -ENOMEM. */
int spool_profile_encode(const struct fusee_profile *, struct buf *);
/* Takes over the bytes, which malloc() returned. 0; -EBADMSG: not a profile, or an index in it
 * leads nowhere; -ENOMEM. */
int spool_profile_decode(void *bytes, size_t len, struct spool_profile **ret);
const struct fusee_profile *spool_profile_get(const struct spool_profile *);
void spool_profile_free(struct spool_profile *); /* NULL is fine */
#endif
