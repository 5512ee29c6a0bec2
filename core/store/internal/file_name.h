/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the names of sink.pprof's files:
 * 2026-11-21T08-15-00Z-nginx-1a2b3c4d-0123456789abcdef.pb.gz (plugins/sinks/pprof/pprof.md). */
#ifndef STORE_FILE_NAME_H
#define STORE_FILE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/profile.h>

struct file_name {
	uint64_t start_ns;       /* of the window, in complete seconds */
	struct fusee_str target; /* "nginx"; a part of the name */
	uint32_t hash;           /* of the labels that the profile has for all samples */
};

/* false: the name has another form. */
bool file_name_parse(const char *name, struct file_name *);
/* The hash in the name of a profile with these labels, in this order. */
uint32_t file_name_hash(const struct fusee_label *, uint32_t n);
#endif
