/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles for servers that symbolize them: whose functions a server can name, and whose only this
 * process can. For one thread. */
#ifndef SYMBOLIZER_SERVER_NAMES_H
#define SYMBOLIZER_SERVER_NAMES_H

#include <stdbool.h>

#include "unwind/files.h"

/* May a server have this file, and find it by its build ID? It can't have the vDSO, which is in no
 * file. */
bool server_names_file(const struct file *);
/* Is the worker to find the file's functions? server_names: the profile is for such a server. */
bool server_names_is_local(const struct file *, bool server_names);
#endif
