"""The state that the proxies of one cluster share.

Changes are records in a compacted topic, which every proxy applies in order.
"""
