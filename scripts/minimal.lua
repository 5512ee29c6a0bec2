-- SPDX-License-Identifier: Apache-2.0
-- Everything that runs, 19 times a second, a profile a minute into a directory.
sink.pprof { dir = os.getenv "FUSEE_DIR" or "/var/lib/fusee" }
