"""The catalogue in Traditional Chinese: calls of the CUDA API that fail, and the asynchronous hardware of Hopper."""

from __future__ import annotations

_REFUSED = "kernel {launched} 的啟動被拒絕："
_DYNAMIC = (
    f"{_REFUSED}要求 {{bytes}} 位元組的動態 shared memory[（另有靜態 {{static}} 位元組）]，但最多 {{limit}} 位元組"
)
_ASK_FOR_LESS = "請用 <<<…>>> 的第三個引數要求少一些"
_SETUP = "請檢查 barrier 的設定：由一個 thread、在其他 thread 使用之前、以實際到達的 thread 數來設定。"

WORDS = {
    "direction": {
        "to_host": "目的地是主機記憶體，但方向說是裝置",
        "from_host": "來源是主機記憶體，但方向說是裝置",
        "from_device": "來源是裝置記憶體，但方向說是主機",
        "to_device": "目的地是裝置記憶體，但方向說是主機",
    },
    "touched": {"read_sums": "讀取了累加值", "wrote_sums": "寫入了累加值", "wrote_a": "寫入了 A 的暫存器"},
}

SENTENCES: dict[str, tuple[str, str]] = {
    "launch_refused": (f"{_REFUSED}{{why}}", ""),
    "launch_refused.zero": (
        f"{_REFUSED}{{zero}} 是 0（grid {{grid}}、block {{shape}}）；如果除法捨去成 0，請進位：(n + size - 1) / size",
        "",
    ),
    "launch_refused.arguments": (f"{_REFUSED}引數是空指標，而 kernel 有參數", ""),
    "launch_refused.grid": (f"{_REFUSED}grid {{grid}} 超過上限 (2147483647,65535,65535)", ""),
    "launch_refused.block": (
        f"{_REFUSED}block {{shape}} 有 {{threads}} 個 thread；上限是總共 1024 個，各維 (1024,1024,64)",
        "",
    ),
    "launch_refused.shared": (
        _DYNAMIC,
        f"{_ASK_FOR_LESS}，或在啟動之前允許更多：cudaFuncSetAttribute({{launched}}, "
        "cudaFuncAttributeMaxDynamicSharedMemorySize, {bytes})。",
    ),
    "launch_refused.shared_allowed": (_DYNAMIC, f"{_ASK_FOR_LESS}，或用 cudaFuncSetAttribute 允許這麼多。"),
    "launch_refused.shared_never": (
        f"{_DYNAMIC}：sm_{{architecture}} 的一個 block 最多就這麼多",
        f"{_ASK_FOR_LESS}：把 tile 縮小。",
    ),
    "launch_refused.bounds": (
        f"{_REFUSED}每個 block {{threads}} 個 thread，但 __launch_bounds__ 承諾最多 {{limit}} 個",
        "",
    ),
    "launch_refused.registers": (
        f"{_REFUSED}每個 thread {{registers}} 個暫存器乘以 {{threads}} 個 thread，超過一個多處理器的 {{limit}} 個暫存器",
        "",
    ),
    "launch_refused.no_clusters": (f"{_REFUSED}這個 GPU 沒有 block cluster：請用 --arch sm_90a", ""),
    "launch_refused.cluster_differs": (f"{_REFUSED}cluster 和 kernel 的 __cluster_dims__ 不同", ""),
    "launch_refused.cluster_multiple": (f"{_REFUSED}grid 不是 cluster 的倍數", ""),
    "launch_refused.cluster_size": (f"{_REFUSED}一個 cluster 最多 16 個 block；要能在每個 GPU 上執行則最多 8 個", ""),
    "launch_refused.cooperative": (f"{_REFUSED}grid 的 block 數超過 GPU 能同時容納的數目", ""),
    "too_much_shared": (
        "[{function}：]動態 {bytes} 位元組加靜態 {static} 位元組的 shared memory；sm_{architecture} 上一個 block 最多 {limit} 位元組",
        "",
    ),
    "copy_too_long": (
        "[{function}：]從 {spot} 開始的 {bytes} 位元組多了 {excess} 位元組",
        "請比較呼叫中的位元組數和配置的大小（是位元組，不是元素個數）。",
    ),
    "copy_outside": ("[{function}：]指標指向{relation}記憶體", "請使用配置回傳的指標，並且在釋放之前使用。"),
    "copy_null": ("[{function}：]{side} 是空指標", ""),
    "copy_direction": ("[{function}：]{direction}", ""),
    "not_device_memory": ("[{function}：]指標指向主機記憶體（或是空指標），不是裝置記憶體", ""),
    "symbol_too_small": ("[{function}：]位移 {offset} 的 {bytes} 位元組放不進 {size} 位元組的符號", ""),
    "out_of_memory": ("[{function}：]要求 {bytes} 位元組被拒絕：GPU 剩下的記憶體不足", ""),
    "call_failed": ("{function} 失敗：{name}（錯誤 {code}）[：{why}]", ""),
    "graph_cycle": ("[{function}：]graph 的節點互相等待，形成循環", ""),
    "bad_channels": ("[{function}：]channel 必須是一、二或四個，各 8、16 或 32 位元", ""),
    "not_for_surfaces": ("[{function}：]陣列配置時沒有 cudaArraySurfaceLoadStore", ""),
    "bad_tensor_map": ("cuTensorMapEncode：{why}", "CUDA driver API 的 tensor map 頁面列出了各項上限。"),
    "emulator_lacks": ("[{function}：]模擬器沒有 {what}；呼叫回傳 cudaErrorNotSupported", "可以改為：{instead}。"),
    "not_a_texture.other": ("透過不是 {object} 物件、而是另一種物件的東西存取", ""),
    "not_a_texture.none": ("透過不是 {object} 物件的東西存取：它建立了嗎？是否已經銷毀？", ""),
    "texture_memory_freed": ("這個 {object} 物件的記憶體已經釋放", ""),
    "surface_misaligned": ("surface 存取 {bytes} 位元組，x = {at} 位元組：x 必須是其大小的倍數", ""),
    "surface_outside": (
        "surface 存取 x = {x} 位元組、y = {y}、z = {z}，在 {width} x {height} x {depth} 個 {element} 位元組元素的 surface 之外"
        "（x 以位元組計）",
        "",
    ),
    "object_not_initialised": (
        "這個 barrier 物件（cuda::barrier、mbarrier）沒有初始化：第一次使用之前必須由一個 thread 執行 init(&barrier, count)，"
        "然後 __syncthreads()",
        _SETUP,
    ),
    "object_count": ("{count} 次到達的 barrier 物件：數目必須是 1 到 {limit}", _SETUP),
    "object_arrivals": (
        "barrier 物件的 {expected} 次到達只差 {pending} 次，卻又到達了 {count} 次：到達的 thread 比 init() 的 count 多，"
        "或某個 thread 在階段完成之前再次到達",
        _SETUP,
    ),
    "object_bytes": ("barrier 物件的一個階段要等待 {bytes} 位元組：上限是 {limit}", _SETUP),
    "expect_too_few": (
        "在這裡發出的 {bytes} 位元組 bulk copy 到達之前，barrier 物件的階段就完成了：第 {expect} 行的 expect_tx 計入的位元組太少",
        "請讓 expect_tx 計入一個階段中所有複製的位元組，包括 multicast 的兩半。",
    ),
    "object_gone": (
        "這裡發出的 bulk copy 在沒有初始化、或已失效的 barrier 物件完成",
        "請在 barrier 物件的記憶體另作他用之前等待複製。",
    ),
    "bulk_unfinished": (
        "block 結束時，這裡發出的 {bytes} 位元組 bulk copy 還在進行",
        "請在 block 結束之前於每個 bulk copy 的 barrier 物件等待。",
    ),
    "bulk_still_read": (
        "block 結束時，這裡發出的 {bytes} 位元組 bulk copy 可能還在讀取它的 shared memory",
        "請讓存入的 thread 在結束之前執行 cp.async.bulk.wait_group.read 0。",
    ),
    "bulk_size": ("{bytes} 位元組的 bulk copy：數目必須是 16 的倍數", ""),
    "box_start": (
        "box 從 tensor 的列開頭之後 {bytes} 位元組處開始：第一個座標乘以元素的 {element} 位元組必須是 16 的倍數",
        "",
    ),
    "box_before": ("存入的 box 在第 {dimension} 維從座標 {at} 開始，位於 tensor 之前：只有載入可以這樣", ""),
    "pixels_outside": ("像素行在第 {dimension} 維從座標 {at} 開始，在 {low} 到 {high} 的 box 之外", ""),
    "pixels_stored_outside": (
        "存入的像素 box 在第 {dimension} 維從 {low} 到 {high}，超出 tensor：只有載入可以這樣",
        "",
    ),
    "not_a_map": (
        "{dimensions} 維 bulk copy 的 map 不是 {dimensions} 維的 tensor map：請以 const __grid_constant__ 參數傳遞 CUtensorMap",
        "",
    ),
    "map_mode": ("以 {mode} 模式進行 bulk copy，但 tensor map 來自 {made}", ""),
    "box_misaligned": (
        "tensor 的 box 在 shared memory 中必須從 128 位元組的倍數開始，但多了 {past} 位元組：請宣告 __align__(128)",
        "",
    ),
    "store_and_object_apart": (
        "對 cluster 中 block {peer} 的非同步存入，在 block {object} 的 barrier 物件完成：請把兩個位址對應到同一個 block",
        "",
    ),
    "wgmma_unfenced": (
        "wgmma 之前沒有 wgmma.fence：它可能在暫存器寫入之前就讀取",
        "請在第一個 wgmma 之前、以及每次寫入累加值或 A 的暫存器之後執行 wgmma.fence.sync.aligned。",
    ),
    "wgmma_differs": ("warpgroup 的四個 warp 執行不同的 wgmma 指令，或用不同的 descriptor 執行同一個指令", ""),
    "wgmma_registers": (
        "wgmma 使用了第 {line_of} 行寫入的暫存器，中間沒有 wgmma.fence",
        "請在最後一次寫入暫存器和 wgmma 之間執行 wgmma.fence.sync.aligned。",
    ),
    "wgmma_touched": (
        "{touched}，屬於第 {line_of} 行還沒有等待的 wgmma",
        "請先提交（wgmma.commit_group）並等待它的群組（wgmma.wait_group）。",
    ),
    "wgmma_alone": (
        "block 的 warp {warp} 沒有執行這個 wgmma：warpgroup 的四個 warp（{first} 到 {last}）必須執行相同的指令",
        "",
    ),
    "wgmma_outside": (
        "wgmma 讀取了 shared memory 的位址 {offset}，但 block 的 shared memory 到 {size} 為止：請檢查 descriptor 的開頭和位元組位移",
        "",
    ),
    "wgmma_system_shared": (
        "wgmma 讀取了 shared memory 的位址 {offset}；kernel 的變數從 {begin} 開始，前面是系統用的",
        "請由 tile 的位址（__cvta_generic_to_shared）產生 descriptor 的開頭。",
    ),
    "wgmma_under_way": (
        "wgmma 讀取了 shared memory 位移 {offset}，而第 {line_of} 行由 thread {thread_of} 發出的 bulk copy 還在寫入",
        "請在 wgmma 之前於複製的 barrier 物件等待，並在下一次複製覆寫 tile 之前等待 wgmma 的群組。",
    ),
    "swizzle_differs": (
        "wgmma 的 descriptor 說是{says}，但第 {line_of} 行的 tensor copy 以{wrote}寫入這個 tile",
        "請讓 tensor map 和 descriptor（第 62、63 位元：1 是 128 位元組，2 是 64，3 是 32，0 是沒有）使用相同的 swizzle。",
    ),
    "setmaxnreg": (
        "setmaxnreg.{how} 到 {count} 個暫存器，而 warp 有 {now} 個",
        "setmaxnreg.dec 不能多於 warp 現有的暫存器，setmaxnreg.inc 不能少於現有的。",
    ),
}
