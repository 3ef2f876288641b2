# SPDX-License-Identifier: Apache-2.0
print("a word before it fails")
raise RuntimeError("this module never works")
