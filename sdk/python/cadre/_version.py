# SPDX-License-Identifier: Apache-2.0
VERSION = "0.1.0"  # the same as in the file VERSION of the source tree
