/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/unwinders.h"

#include "loss/loss.h"

const char *unwinder_reason(const struct fusee_unwinder_ops *ops, uint32_t error)
{
	for (uint32_t i = 0; ops->reasons && ops->reasons[i]; i++)
		if (i + 1 == error)
			return ops->reasons[i];
	return loss_text(LOSS_UNNAMED);
}

const struct inspection_slab *unwinder_table(const struct process *process, uint32_t unwinder,
					     const struct fusee_unwinder_ops *ops,
					     const struct process_mapping *m)
{
	const struct file *f = m->file;

	if (!(ops->flags & FUSEE_UNWINDER_NATIVE) && (!f || !f->slabs[unwinder]))
		f = files_with_table(process, unwinder);
	else if (!m->based)
		return NULL;
	return f ? f->slabs[unwinder] : NULL;
}
