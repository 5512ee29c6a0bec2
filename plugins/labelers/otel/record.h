/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* OpenTelemetry's record of what a thread works on (OTEP 4947), and the words by which the step
 * finds it. */
#ifndef OTEL_RECORD_H
#define OTEL_RECORD_H

#define OTEL_VARIABLE "otel_thread_ctx_v1" /* thread-local: the record's address, 0: none */

/* Of the record: 16 and 8 bytes, then a byte that is 1 while they are right. */
enum otel_record { OTEL_TRACE_ID = 0, OTEL_SPAN_ID = 16, OTEL_VALID = 24, OTEL_BYTES = 28 };

#define OTEL_VARIABLES 4u /* of a process, each in a file of its own */

/* Words of the process for each of them: struct fusee_tls with the address of its word, whose lower
 * half comes first. */
enum otel_words { OTEL_KIND, OTEL_OFFSET, OTEL_ADDRESS, OTEL_DESCRIBED = 4, OTEL_WORDS };
#endif
