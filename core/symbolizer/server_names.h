/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles for servers that symbolize: which files a server can symbolize. For one thread. */
#ifndef SYMBOLIZER_SERVER_NAMES_H
#define SYMBOLIZER_SERVER_NAMES_H

#include <stdbool.h>

#include "files/files.h"

/* Whether a server can have this file: it has a build ID, and is not the vDSO. */
bool server_names_file(const struct file *);
#endif
