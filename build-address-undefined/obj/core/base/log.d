build-address-undefined/obj/core/base/log.o: core/base/log.c \
 core/base/log.h
core/base/log.h:
