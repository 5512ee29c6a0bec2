/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/programs.h"

#include <bpf/bpf.h>
#include <errno.h>

int programs_next_id(uint32_t id, uint32_t *next)
{
	return bpf_prog_get_next_id(id, next) ? -errno : 0;
}
