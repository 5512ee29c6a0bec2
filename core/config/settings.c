// SPDX-License-Identifier: Apache-2.0
/* The core's own settings, in the form that plugins' options have. */
#include <stddef.h>

#include "config/plan.h"
#include "bpf/sampler.h"

static const struct fusee_option cpu[] = {
	{.name = "hz",
	 .type = PLAN_NUMBER,
	 .offset = offsetof(struct plan, hz),
	 .def = "19",
	 .min = 100,
	 .max = 20000000,
	 .doc = "Samples a second and CPU of targets that the policy gives no rate of their own."},
	{.name = "sampler",
	 .type = FUSEE_ENUM,
	 .offset = offsetof(struct plan, sampler),
	 .def = "auto",
	 .choices = sampler_choices,
	 .doc = "Who walks stacks: bpf (the kernel), snapshot (user space, over copies of them), "
		"or "
		"auto: bpf where it works."},
	{.name = "stack",
	 .type = FUSEE_SIZE,
	 .offset = offsetof(struct plan, stack_bytes),
	 .def = "65528",
	 .min = 1024,
	 .max = 65528,
	 .doc = "Bytes of a stack that are copied where user space walks it; what is deeper is "
		"cut."},
	{.name = "kernel",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, kernel),
	 .def = "true",
	 .doc = "Kernel frames too, where we may see them."},
	{.name = "threads",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, threads),
	 .def = "false",
	 .doc = "Each sample carries its thread's id as label `tid`."},
	{.name = "inlines",
	 .type = FUSEE_BOOL,
	 .offset = offsetof(struct plan, inlines),
	 .def = "true",
	 .doc = "Inlined functions are frames of their own, where debug information tells them."},
};

static const struct fusee_option metrics[] = {
	{.name = "listen",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct plan, listen),
	 .def = "127.0.0.1:9190",
	 .doc = "Address and port of /metrics, /healthz and /readyz, or unix:/path; without a "
		"metrics line nothing listens."},
};

static const struct fusee_option control[] = {
	{.name = "path",
	 .type = FUSEE_STRING,
	 .offset = offsetof(struct plan, control),
	 .doc = "Where the socket of fusee ctl is; without a control line /run/fusee/control for "
		"root."},
};

#define TABLE(a)                                             \
	{                                                    \
		(a), sizeof(a) / sizeof(*(a)), sizeof(*(a)), \
	}

const struct plan_settings plan_settings[] = {
	{"sample.cpu", "What is measured: time on a CPU, by samples of the stack.", TABLE(cpu)},
	{"metrics", "The agent's own numbers, for Prometheus.", TABLE(metrics)},
	{"control", "The socket that fusee ctl talks to.", TABLE(control)},
};
const uint32_t plan_nsettings = sizeof(plan_settings) / sizeof(*plan_settings);
