# SPDX-License-Identifier: Apache-2.0
# The only build entry. V=1 shows commands; SANITIZER=address,undefined or thread builds into
# build-SANITIZER, DEBUG=1 into build-debug. In both a failed assertion aborts (core/base/assert.h).
.DELETE_ON_ERROR:
.SECONDARY:

VERSION := 0.1.0
CC := gcc
CLANG ?= clang
PKG_CONFIG ?= pkg-config
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
ZSH_DIR ?= $(PREFIX)/share/zsh/site-functions
# where fusee.service goes, and with it /etc/fusee/fusee.lua; empty: neither is installed
SYSTEMD_UNIT_DIR ?= $(if $(filter /usr,$(PREFIX)),/usr/lib/systemd/system)
comma := ,
# SHA-256 and MD5 of OpenSSL's archive are 20 KiB; its shared library costs each process 0.6 MB and 1.4 ms
CRYPTO := $(if $(findstring /,$(shell $(CC) -print-file-name=libcrypto.a)),-l:libcrypto.a,-lcrypto)
# of the command line alone: many environments set DEBUG for something else
ASSERTS := $(if $(filter command%,$(origin DEBUG)),$(DEBUG))
B := build$(if $(SANITIZER),-$(subst $(comma),-,$(SANITIZER)))$(if $(ASSERTS),-debug)
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(patsubst $(B)/%,%,$@);)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wno-format-nonliteral \
	$(if $(CI),-Werror)
HARDEN := $(if $(SANITIZER),,-D_FORTIFY_SOURCE=2 -fstack-protector-strong)
# fences that the thread sanitizer does not see are those that the kernel reads behind
SAN := $(if $(SANITIZER),-fsanitize=$(SANITIZER) -fno-omit-frame-pointer $(if $(findstring thread,$(SANITIZER)),-Wno-tsan))
CFLAGS ?= $(if $(ASSERTS),-Og,-O2) -g
LDFLAGS ?= -Wl,-z,relro,-z,now
# no path of the build in what it makes
PREFIX_MAP := -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(CURDIR)/=
PACKAGES := libbpf libelf libdw zlib libdeflate libzstd libprotobuf-c libunwind-generic lua5.4 json-c libpcre2-8
LUA_CFLAGS := $(shell $(PKG_CONFIG) --cflags lua5.4)
ALL_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DFUSEE_VERSION='"$(VERSION)"' -DFUSEE_LIBDIR='"$(LIBDIR)"' -Icore -Iinclude -I$(B)/gen \
	-DOPENSSL_API_COMPAT=10100 -fPIC -fvisibility=hidden $(PREFIX_MAP) -MMD -MP $(WARN) $(HARDEN) $(SAN) \
	$(if $(ASSERTS)$(SANITIZER),-DFUSEE_DEBUG_ASSERT) $(CFLAGS)
LIBS := $(shell $(PKG_CONFIG) --libs $(PACKAGES)) -liberty $(CRYPTO) -llzma -ldl -lpthread -lm
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Iinclude -Ibpf $(PREFIX_MAP) -MMD -MP

CORE := $(filter-out core/cli/main.c,$(sort $(wildcard core/*/*.c)))
CORE_O := $(CORE:%.c=$(B)/obj/%.o) $(B)/obj/gen/profile.pb-c.o
# a folder each: plugins/KIND/NAME; a file `packages` in it names what its library is for pkg-config,
# a file `uses` which of the libraries plugins/lib/NAME are linked into it
FOLDERS := $(filter-out plugins/lib/%,$(patsubst %/,%,$(sort $(wildcard plugins/*/*/))))
uses = $(shell cat $(1)/uses 2>/dev/null)
needs = $(sort $(shell cat $(1)/packages $(patsubst %,plugins/lib/%/packages,$(call uses,$(1))) 2>/dev/null))
MISSING := $(foreach f,$(FOLDERS),$(foreach p,$(call needs,$(f)),$(if $(shell $(PKG_CONFIG) --exists $(p) || echo no),$(f))))
$(foreach f,$(MISSING),$(info plugin $(notdir $(f)) is left out: no $(call needs,$(f)) (pkg-config)))
FOLDERS := $(filter-out $(MISSING),$(FOLDERS))
SHARED := $(patsubst %/,%,$(sort $(wildcard plugins/lib/*/)))
SHARED := $(foreach f,$(SHARED),$(if $(call needs,$(f)),$(if $(shell $(PKG_CONFIG) --exists $(call needs,$(f)) && echo yes),$(f)),$(f)))
PLUGINS := $(foreach f,$(FOLDERS),$(B)/plugins/$(notdir $(f)).so)
UNIT := $(sort $(basename $(notdir $(wildcard tests/unit/*.c)))) \
	$(sort $(basename $(notdir $(foreach f,$(FOLDERS) $(SHARED),$(wildcard $(f)/test_*.c)))))

LIBRARIES := $(foreach f,$(SHARED),$(B)/lib/libfusee-$(notdir $(f)).a)

all: $(B)/fusee $(PLUGINS) $(LIBRARIES)

# fusee query reads what sink.parquet has written
$(B)/fusee: $(B)/obj/core/cli/main.o $(B)/libcore.a $(B)/lib/libfusee-parquet.a
	$(call say,LINK)$(CC) $(ALL_CFLAGS) -pie $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libcore.a: $(CORE_O)
	$(call say,AR)rm -f $@ && ar rcsD $@ $^

$(B)/obj/core/lua/%.o: ALL_CFLAGS += $(LUA_CFLAGS)

# LIBDIR is compiled in: another one (make install PREFIX=...) compiles that file anew
$(B)/libdir: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBDIR)' | cmp -s - $@ || echo '$(LIBDIR)' > $@
$(B)/obj/core/plugin/plugin.o: $(B)/libdir

$(B)/obj/%.o: %.c | $(B)/gen/profile.pb-c.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# the page's parts are embedded; it runs only the script that has this hash
$(B)/gen/flamegraph.js: $(addprefix core/export/page/flamegraph,_tree.js _numbers.js _values.js _draw.js _svg.js _table.js .js)
	@mkdir -p $(@D)
	$(Q)cat $^ > $@
$(B)/gen/flamegraph.hash: $(B)/gen/flamegraph.js
	$(Q)sha256sum < $< | head -c 64 | tr a-f A-F | basenc --base16 -d | base64 | tr -d '\n' > $@
$(B)/obj/core/export/flamegraph.o: $(wildcard core/export/page/flamegraph.*) $(B)/gen/flamegraph.js $(B)/gen/flamegraph.hash
$(B)/obj/core/export/flamegraph.o: ALL_CFLAGS += -Wa,-I$(B)/gen

# the page of fusee ui, whose modules share the flame graph's numbers
$(B)/gen/ui_numbers.js: core/export/page/flamegraph_numbers.js
	@mkdir -p $(@D)
	$(Q)cat $< > $@
	$(Q)echo 'export { amountOf, fileName, percent, points, printable, rounded, share, short, signed };' >> $@
$(B)/obj/core/ui/assets.o: $(wildcard core/ui/page/*) $(B)/gen/ui_numbers.js
$(B)/obj/core/ui/assets.o: ALL_CFLAGS += -Wa,-I$(B)/gen

$(B)/obj/core/cli/new.o: $(wildcard core/cli/skeleton/*)
$(B)/obj/core/completion/completion.o: $(wildcard core/completion/*.in)

# pprof's schema, for decoding and for the tests' oracle
$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: core/pprof/%.proto
	@mkdir -p $(B)/gen
	$(call say,PROTO)protoc-c --proto_path=core/pprof --c_out=$(B)/gen $<
# what servers decode, for the tests of sinks
$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: tests/lib/%.proto
	@mkdir -p $(B)/gen
	$(call say,PROTO)protoc-c --proto_path=tests/lib --c_out=$(B)/gen $<
$(B)/obj/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -Wno-shadow -c -o $@ $<

# ---- what plugins share: a folder each, linked statically ----
define library
$(1)_LIB_O := $$(patsubst %.c,$(B)/obj/%.o,$$(filter-out $(2)/test_%,$$(wildcard $(2)/*.c)))
$(B)/lib/libfusee-$(1).a: $$($(1)_LIB_O)
	@mkdir -p $$(@D)
	$$(call say,AR)rm -f $$@ && ar rcsD $$@ $$^
endef
$(foreach f,$(SHARED),$(eval $(call library,$(notdir $(f)),$(f))))
# what decodes instructions is in the core too
$(B)/libcore.a: $(insn_LIB_O)
archives = $(patsubst %,$(B)/lib/libfusee-%.a,$(call uses,$(1)))

# ---- plugins: a folder each; X.bpf.c is built for BPF and, but for samplers', natively ----
define plugin
$(1)_C := $$(filter-out $(2)/test_% plugins/samplers/%.bpf.c,$$(wildcard $(2)/*.c $(2)/*/*.c))
$(1)_O := $$($(1)_C:%.c=$(B)/obj/%.o)
$(1)_BPF := $$(patsubst $(2)/%.c,$(B)/bpf/%.o,$$(wildcard $(2)/*.bpf.c))
$(1)_LIBS := $(if $(call needs,$(2)),$(shell $(PKG_CONFIG) --libs $(call needs,$(2))))
$$($(1)_O): $$($(1)_BPF)
$(B)/plugins/$(1).so: $$($(1)_O) $(call archives,$(2))
	@mkdir -p $$(@D)
	$$(call say,PLUGIN)$(CC) $(ALL_CFLAGS) -shared $(LDFLAGS) -Wl,-z,defs -o $$@ $$^ $$($(1)_LIBS) \
		$(if $(SANITIZER),,-Wl,--no-undefined)
$(B)/bpf/%.bpf.o: $(2)/%.bpf.c
	@mkdir -p $$(@D)
	$$(call say,BPF)$(CLANG) $(BPF_CFLAGS) -c -o $$@ $$<
endef
$(foreach f,$(FOLDERS),$(eval $(call plugin,$(notdir $(f)),$(f))))
$(B)/obj/plugins/%.o: ALL_CFLAGS += -Wa,-I$(B)/bpf

# ---- the core's own BPF programs ----
$(B)/bpf/sampler.bpf.o $(B)/bpf/waits.bpf.o $(B)/bpf/probes.bpf.o $(B)/bpf/tracepoints.bpf.o $(B)/bpf/cgroup_moves.bpf.o $(B)/bpf/task_registers.bpf.o: $(B)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF)$(CLANG) $(BPF_CFLAGS) -c -o $@ $<
$(B)/obj/core/bpf/object.o: $(addprefix $(B)/bpf/,sampler.bpf.o waits.bpf.o probes.bpf.o tracepoints.bpf.o)
$(B)/obj/core/programs/cgroup_moves.o: $(B)/bpf/cgroup_moves.bpf.o
$(B)/obj/core/programs/task_registers.o: $(B)/bpf/task_registers.bpf.o
$(B)/obj/core/bpf/object.o $(B)/obj/core/programs/cgroup_moves.o $(B)/obj/core/programs/task_registers.o: ALL_CFLAGS += -Wa,-I$(B)/bpf

# ---- tests ----
vpath %.c tests/unit $(wildcard plugins/*/*)
$(B)/tests/test_%: $(B)/obj/test_%.o $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
# a plugin's own test is linked with that plugin's objects, a library's with the library; their shared
# libraries come first, else a test would have parts of two libcryptos
define plugin_test
$(B)/tests/$(1): $($(2)_O) $(call archives,$(3))
$(B)/tests/$(1): LIBS := $($(2)_LIBS) $(LIBS)
endef
$(foreach f,$(FOLDERS),$(foreach t,$(basename $(notdir $(wildcard $(f)/test_*.c))),\
	$(eval $(call plugin_test,$(t),$(notdir $(f)),$(f)))))
define library_test
$(B)/tests/$(1): $(B)/lib/libfusee-$(notdir $(2)).a $(call archives,$(2))
$(B)/tests/$(1): LIBS += $(if $(call needs,$(2)),$(shell $(PKG_CONFIG) --libs $(call needs,$(2))))
endef
$(foreach f,$(SHARED),$(foreach t,$(basename $(notdir $(wildcard $(f)/test_*.c))),$(eval $(call library_test,$(t),$(f)))))
$(B)/obj/test_otlp_encode.o $(B)/obj/test_sink_otlp.o: $(B)/gen/otlp.pb-c.h
$(B)/tests/test_otlp_encode $(B)/tests/test_sink_otlp: $(B)/obj/gen/otlp.pb-c.o
$(B)/obj/test_parca_debuginfo.o: $(B)/gen/debuginfo.pb-c.h
$(B)/tests/test_parca_debuginfo: $(B)/obj/gen/debuginfo.pb-c.o
$(B)/obj/test_sink_parca.o: $(B)/gen/parca.pb-c.h
$(B)/tests/test_sink_parca: $(B)/obj/gen/parca.pb-c.o
# those that fail allocations in turn (tests/lib/faults.h)
FAULTS := $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc strdup strndup asprintf vasprintf __asprintf_chk __vasprintf_chk)
$(B)/tests/test_background $(B)/tests/test_config_faults $(B)/tests/test_targets_faults $(B)/tests/test_plugin_faults $(B)/tests/test_worker_faults $(B)/tests/test_files_faults $(B)/tests/test_claims $(B)/tests/test_codefile: LDFLAGS += $(FAULTS)
$(B)/obj/test_linker.o: $(addprefix $(B)/bpf/,steps.bpf.o dwarf.bpf.o framepointer.bpf.o offcpu.bpf.o)
$(B)/obj/test_linker.o: ALL_CFLAGS += -Wa,-I$(B)/bpf
$(B)/obj/test_%.o: test_%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -Itests -c -o $@ $<

# the dwarf unwinder's tables: against libdw's answers, and what making them costs
$(B)/accuracy/rows: tests/accuracy/rows.c
$(B)/accuracy/stepped: tests/accuracy/stepped.c
$(B)/bench/tables: tests/bench/tables.c
$(B)/accuracy/rows $(B)/accuracy/stepped $(B)/bench/tables: tests/accuracy/host.h $(dwarf_O) $(gotable_LIB_O) $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LDFLAGS) -o $@ $(filter %.c,$^) $(filter %.o %.a,$^) $(LIBS)

# its decoder of instructions, against Zydis
$(B)/accuracy/decoder: tests/accuracy/decoder.c tests/accuracy/insn_oracle.h \
		$(insn_LIB_O)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis -lelf -ldw

# what encoding costs
$(B)/bench/encode: tests/bench/encode.c $(otlp_O) $(call archives,plugins/sinks/otlp) $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LDFLAGS) -o $@ $^ $(otlp_LIBS) $(LIBS)

# what delivering costs, by the plugins as they are
$(B)/bench/sinks: tests/bench/sinks.c $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LDFLAGS) -o $@ $^ $(LIBS)

# a day of profiles
$(B)/bench/store: tests/bench/store.c $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LDFLAGS) -o $@ $^ $(LIBS) -lm

# programs that scripts in tests/run use
TOOLS := $(filter-out $(if $(wildcard /usr/include/bpf/libbpf.h),,tool_bpf tool_steps tool_ticks),\
	$(sort $(basename $(notdir $(wildcard tests/tools/tool_*.c)))))
$(B)/tests/tool_%: $(B)/obj/tests/tools/tool_%.o $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
$(B)/tests/tool_parquet: $(B)/lib/libfusee-parquet.a
# those that load the unwinders' BPF halves
$(B)/bpf/%.bpf.o: tests/tools/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF)$(CLANG) $(BPF_CFLAGS) -c -o $@ $<
$(B)/obj/tests/tools/tool_bpf.o: $(B)/bpf/walk.bpf.o
$(B)/obj/tests/tools/tool_steps.o: $(addprefix $(B)/bpf/,steps.bpf.o dwarf.bpf.o framepointer.bpf.o)
$(B)/obj/tests/tools/tool_ticks.o: $(B)/bpf/ticks.bpf.o
$(B)/obj/tests/tools/tool_bpf.o $(B)/obj/tests/tools/tool_steps.o $(B)/obj/tests/tools/tool_ticks.o: ALL_CFLAGS += -Wa,-I$(B)/bpf
$(B)/obj/tests/tools/tool_steps.o: ALL_CFLAGS += -fomit-frame-pointer -fno-optimize-sibling-calls
$(B)/tests/tool_bpf $(B)/tests/tool_steps $(B)/tests/tool_ticks: LIBS += -lbpf
$(B)/tests/tool_steps: $(dwarf_O) $(gotable_LIB_O) $(B)/obj/plugins/unwinders/framepointer/framepointer.bpf.o
# fusee with a sampler that loses records on purpose
$(B)/dropping/sampler.bpf.o: tests/tools/dropping.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF)$(CLANG) $(BPF_CFLAGS) -c -o $@ $<
$(B)/dropping/object.o: core/bpf/object.c $(B)/dropping/sampler.bpf.o $(addprefix $(B)/bpf/,waits.bpf.o probes.bpf.o tracepoints.bpf.o)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -Wa,-I$(B)/dropping -Wa,-I$(B)/bpf -c -o $@ $<
$(B)/tests/fusee_dropping: $(B)/obj/core/cli/main.o $(B)/dropping/object.o $(B)/libcore.a $(B)/lib/libfusee-parquet.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) -pie $(LDFLAGS) -o $@ $^ $(LIBS)

# fusee whose workers were taken over
$(B)/tests/fusee_liar: $(B)/obj/core/cli/main.o $(B)/obj/tests/tools/liar.o $(B)/libcore.a $(B)/lib/libfusee-parquet.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) -pie $(LDFLAGS) -o $@ $^ $(LIBS)

unit: $(UNIT:%=$(B)/tests/%) $(TOOLS:%=$(B)/tests/%) $(B)/tests/fusee_dropping $(B)/tests/fusee_liar all

# three tiers: CONTRIBUTING.md
check: unit
	@scripts/check $(B)
check-full: unit
	@scripts/check --full $(B)
check-long: unit
	@scripts/check --long $(B)
accuracy: all
	@tests/accuracy/run $(B)
	@tests/accuracy/undescribed $(B)
	@tests/accuracy/python $(B)
	@tests/accuracy/ruby $(B)
	@tests/accuracy/java $(B)
	@tests/accuracy/node $(B)
bench: all
	@tests/bench/run $(B)
fuzz:
	@tests/fuzz/run

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/fusee/plugins $(DESTDIR)$(PREFIX)/include/fusee \
		$(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 755 $(B)/fusee $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(PLUGINS) $(DESTDIR)$(LIBDIR)/fusee/plugins
	install -m 644 include/fusee/*.h $(DESTDIR)$(PREFIX)/include/fusee
	install -m 644 $(LIBRARIES) $(DESTDIR)$(LIBDIR)
	install -m 644 docs/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	sed 's|@PREFIX@|$(PREFIX)|;s|@LIBDIR@|$(LIBDIR)|;s|@VERSION@|$(VERSION)|' packaging/fusee.pc.in \
		> $(DESTDIR)$(LIBDIR)/pkgconfig/fusee.pc
	$(foreach f,$(SHARED),sed 's|@NAME@|$(notdir $(f))|;s|@LIBDIR@|$(LIBDIR)|;s|@VERSION@|$(VERSION)|;s|@NEEDS@|$(call needs,$(f))|' \
		packaging/fusee-library.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/fusee-$(notdir $(f)).pc;)
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(ZSH_DIR) \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(B)/fusee completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/fusee
	$(B)/fusee completion zsh > $(DESTDIR)$(ZSH_DIR)/_fusee
	$(B)/fusee completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/fusee.fish
	install -d $(DESTDIR)$(PREFIX)/share/doc/fusee/examples
	install -m 644 docs/*.md $(DESTDIR)$(PREFIX)/share/doc/fusee
	install -m 644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/fusee/copyright
	install -m 644 scripts/*.lua packaging/kubernetes/fusee.yaml $(DESTDIR)$(PREFIX)/share/doc/fusee/examples
	install -d $(DESTDIR)$(PREFIX)/share/doc/fusee/examples/lua54
	install -m 644 $(addprefix docs/examples/lua54/,Makefile README.md lua54.h lua54.c lua54.bpf.c test_lua54.c) \
		$(DESTDIR)$(PREFIX)/share/doc/fusee/examples/lua54
ifneq ($(SYSTEMD_UNIT_DIR),)
	install -d $(DESTDIR)$(SYSTEMD_UNIT_DIR) $(DESTDIR)/etc/fusee
	sed 's|/usr/bin/|$(PREFIX)/bin/|' packaging/fusee.service > $(DESTDIR)$(SYSTEMD_UNIT_DIR)/fusee.service
	test -e $(DESTDIR)/etc/fusee/fusee.lua || install -m 644 packaging/fusee.lua $(DESTDIR)/etc/fusee
endif

# Debian packages in $(B)/deb, from a build of their own in $(B)/deb/build
deb:
	@VERSION=$(VERSION) packaging/deb $(B)

# a container image of the packages
image: deb
	@VERSION=$(VERSION) packaging/image $(B)

clean:
	rm -rf build build-*

FORCE:
.PHONY: FORCE all unit check check-full check-long accuracy bench fuzz install deb image clean
-include $(shell find $(B)/obj $(B)/bpf $(B)/dropping -name '*.d' 2>/dev/null)
