// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/server_names.h"

bool server_names_file(const struct file *f)
{
	return f->inspection && f->inspection->build_id_len && f->path[0] != '[';
}

bool server_names_is_local(const struct file *f, bool server_names)
{
	return f->state == FILE_READY && f->source.readable &&
	       !(server_names && server_names_file(f));
}
