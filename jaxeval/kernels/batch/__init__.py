"""The one place that batches: fits over slices, refits over slices x resamples, chunked and sharded.

Kernels of tables know one problem: here they are vmapped over the lanes of a chunk. Kernels of graphs and of rows take
a chunk's lanes as the last axis of their arrays. Chunks run one after the other inside one compiled call, and the
chunks of a call are spread over the devices.
"""
