/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/PID/status and /proc/PID/task/TID/status. */
#ifndef PROCESS_INTERNAL_PROCFS_H
#define PROCESS_INTERNAL_PROCFS_H

#include "process/procfs.h"

#define STATUS_VALUE_BYTES 512u /* more than NSpid needs with 32 nested namespaces */

/* Copies the text behind a key, "\nKEY:", of a status file. The file has 700 KB if the process is
 * in 65,536 groups. 1; 0: there is no such line; -errno. */
int procfs_status_value(const char *path, const char *key, char value[STATUS_VALUE_BYTES]);
#endif
