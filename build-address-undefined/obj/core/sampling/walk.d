build-address-undefined/obj/core/sampling/walk.o: core/sampling/walk.c \
 core/sampling/walk.h core/plugin/plugin.h include/fusee/plugin.h \
 include/fusee/profile.h core/process/process.h core/sampling/files.h \
 core/process/procfs.h core/worker/worker.h core/sampling/snapshot.h \
 include/fusee/unwinder.bpf.h
core/sampling/walk.h:
core/plugin/plugin.h:
include/fusee/plugin.h:
include/fusee/profile.h:
core/process/process.h:
core/sampling/files.h:
core/process/procfs.h:
core/worker/worker.h:
core/sampling/snapshot.h:
include/fusee/unwinder.bpf.h:
