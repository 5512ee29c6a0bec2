/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as a request of OTLP's profiles signal. */
#ifndef OTLP_ENCODE_H
#define OTLP_ENCODE_H

#include <fusee/proto.h>

/*
 * Appends the request's body to *out. Samples of processes with the same labels become profiles of
 * one resource. Its attributes are the labels, the pid and `more` (struct fusee_label; labels of
 * the same name take precedence). There is a profile for each value, the default type first.
 * Threads, numbers and reasons are attributes of samples, losses and comments of the first profile.
 * *profiles is the number of profiles in the request. 0 or -ENOMEM.
 */
int encode_request(const struct fusee_profile *, struct fusee_table more, struct fusee_bytes *out,
		   uint32_t *profiles);
#endif
