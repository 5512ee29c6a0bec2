/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/programs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/stat.h>

#define FIRST_PID_NAMESPACE 0xeffffffcu /* PROC_PID_INIT_INO of linux/proc_ns.h */

int programs_next_id(uint32_t id, uint32_t *next)
{
	return bpf_prog_get_next_id(id, next) ? -errno : 0;
}

bool programs_see_our_pids(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NAMESPACE;
}
