/* SPDX-License-Identifier: Apache-2.0 */
/* The files of sink.parquet in a folder. */
#ifndef PARQUET_FILES_FOLDER_H
#define PARQUET_FILES_FOLDER_H

#include "parquet/internal/files.h"

/* 0; -ENOENT: it has no `samples` and `stacks`, or there is none; -errno. */
int files_folder_open(struct files **ret, const char *path);
#endif
