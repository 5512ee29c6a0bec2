/* SPDX-License-Identifier: Apache-2.0 */
#include "store/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "parquet/files_bucket.h"
#include "parquet/files_folder.h"
#include "store/internal/folder.h"
#include "parquet/store.h"

static int no_place(const char *place, int r, char **error)
{
	int n = r == -ENOTDIR
			? asprintf(error, "'%s' is a file: fusee report shows a file", place)
			: asprintf(error, "cannot open the folder '%s': %s", place, strerror(-r));

	if (n < 0)
		*error = NULL;
	return -EINVAL;
}

static int open_parquet(struct store **ret, const char *place)
{
	struct files *files;
	int r = files_folder_open(&files, place);

	if (r)
		return r;
	r = parquet_open(ret, files);
	if (r)
		files->ops->close(files);
	return r;
}

int place_open_bucket(struct store **ret, struct fusee_instance *instance)
{
	struct files *files;
	int r = files_bucket_new(&files, instance);

	if (r) {
		instance_free(instance);
		return r;
	}
	r = parquet_open(ret, files);
	if (r)
		files->ops->close(files);
	return r;
}

int place_open(struct store **ret, const char *place, char **error)
{
	int r = open_parquet(ret, place);

	if (r == -ENOENT)
		r = folder_open(ret, place);
	*error = NULL;
	return r && r != -ENOMEM ? no_place(place, r, error) : r;
}
