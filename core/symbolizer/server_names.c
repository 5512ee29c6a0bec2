// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/server_names.h"

bool server_names_file(const struct file *f)
{
	return f->inspection && f->inspection->build_id_len && f->path[0] != '[';
}
