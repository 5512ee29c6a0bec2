/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as a request of OTLP's profiles signal. */
#ifndef OTLP_ENCODE_H
#define OTLP_ENCODE_H

#include <fusee/proto.h>

/*
 * Appends the request's body to *out. Samples of processes with the same labels are together, as
 * profiles of one resource, whose attributes are the labels, the pid and `more` (struct
 * fusee_label, which labels of the same name come before); of each value there is a profile, that
 * of the default type first. Threads, numbers and reasons are attributes of samples; losses and
 * comments those of the first profile. *profiles is the number of profiles in the request. 0 or
 * -ENOMEM.
 */
int encode_request(const struct fusee_profile *, struct fusee_table more, struct fusee_bytes *out,
		   uint32_t *profiles);
#endif
