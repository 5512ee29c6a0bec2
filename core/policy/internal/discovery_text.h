/* SPDX-License-Identifier: Apache-2.0 */
/* process_text() of struct fusee_discovery_host: what discoveries read of processes. */
#ifndef POLICY_INTERNAL_DISCOVERY_TEXT_H
#define POLICY_INTERNAL_DISCOVERY_TEXT_H

#include <stdint.h>
#include <sys/types.h>

#include "opener/opener.h"

/* Its results. opener: NULL: this process reads. -ETIMEDOUT: the process keeps readers waiting. */
int64_t discovery_text(struct opener *, pid_t, const char *name, uint64_t offset, void *buf,
		       uint64_t len);
#endif
