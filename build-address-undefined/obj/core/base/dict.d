build-address-undefined/obj/core/base/dict.o: core/base/dict.c \
 core/base/dict.h
core/base/dict.h:
