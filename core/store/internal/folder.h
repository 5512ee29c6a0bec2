/* SPDX-License-Identifier: Apache-2.0 */
/* The store that is a folder of pprof files, as sink.pprof writes them. */
#ifndef STORE_FOLDER_H
#define STORE_FOLDER_H

#include "query/store.h"

/* The files whose names end with .pb.gz or .pprof and begin with no dot; those of folders in it are
 * not among them. Each store_read() lists them anew. 0 or -errno. */
int folder_open(struct store **ret, const char *path);
#endif
