/* SPDX-License-Identifier: Apache-2.0 */
/* The files of sink.parquet as objects, which an instance of the sink reads. */
#ifndef PARQUET_FILES_BUCKET_H
#define PARQUET_FILES_BUCKET_H

#include "plugin/instance.h"
#include "parquet/internal/files.h"

/* Takes the instance over, whose ops have list() and read(). 0 or -ENOMEM: then it is the caller's.
 */
int files_bucket_new(struct files **ret, struct fusee_instance *);
#endif
