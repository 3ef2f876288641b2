# SPDX-License-Identifier: Apache-2.0
"""A package in another folder."""


def say(what):
    return f"trained with {what}"
