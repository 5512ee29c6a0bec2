build-address-undefined/obj/core/base/buf.o: core/base/buf.c \
 core/base/buf.h
core/base/buf.h:
