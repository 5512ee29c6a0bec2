build-address-undefined/obj/core/sampling/files.o: core/sampling/files.c \
 core/sampling/files.h core/process/process.h core/process/procfs.h \
 core/plugin/plugin.h include/fusee/plugin.h include/fusee/profile.h \
 core/worker/worker.h core/base/dict.h core/base/log.h
core/sampling/files.h:
core/process/process.h:
core/process/procfs.h:
core/plugin/plugin.h:
include/fusee/plugin.h:
include/fusee/profile.h:
core/worker/worker.h:
core/base/dict.h:
core/base/log.h:
