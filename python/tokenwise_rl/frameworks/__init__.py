"""Plug-ins for training frameworks, each for one version: ``verl`` 0.9.1, ``trl`` 1.16, ``openrlhf`` 0.11.

Nothing is imported from here by ``import tokenwise_rl``, and nothing of a framework is replaced by importing a module.
"""
