/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of an OpenTelemetry resource, as a process states them: the environment variable
 * OTEL_RESOURCE_ATTRIBUTES (OpenTelemetry specification, resource SDK) and the message that its
 * SDK publishes in memory: ProcessContext { Resource resource = 1; repeated KeyValue attributes = 2
 * } of opentelemetry-proto. Both come from the process, which may write anything.
 */
#ifndef PROCESS_RESOURCE_H
#define PROCESS_RESOURCE_H

#include <stddef.h>

#define RESOURCE_MAX 65536 /* bytes of a message that are read */

/* Both copy the value of the attribute `key`, cleaned by text_clean(). 0; -ENOENT: it is missing or
 * empty, or the text before it is malformed. */

/* "key=value,key2=value%202": values are percent-encoded. */
int resource_of_list(const char *list, const char *key, char *out, size_t cap);
/* Only attributes whose values are strings. */
int resource_of_message(const void *message, size_t len, const char *key, char *out, size_t cap);
#endif
