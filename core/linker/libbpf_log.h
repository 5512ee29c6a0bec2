/* SPDX-License-Identifier: Apache-2.0 */
/* What libbpf says: for the debug log, and why the kernel's verifier refused a program. */
#ifndef LINKER_LIBBPF_LOG_H
#define LINKER_LIBBPF_LOG_H

/* From now on libbpf's messages go to the debug log. */
void libbpf_log_start(void);
/* Why the verifier refused a program since then; NULL: it refused none. Valid until the next load.
 */
const char *libbpf_log_refusal(void);
#endif
