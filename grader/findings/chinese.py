"""The catalogue of findings in Traditional Chinese (zh-TW), with the same kinds and names as english.py."""

from __future__ import annotations

from grader.findings.catalogue import Catalogue

_PHRASES = {
    "where": "[{place}][：kernel {kernel}][，{BLOCK} {block} 的 thread {thread}]",
    "then": "：",
    "continues": " ",
    "stop": "。",
    "space": "",
    "and": "和 ",
    "comma": "、",
    "memory": "[`{array}`][（{bytes} 位元組，配置於 {allocated}）]",
    "look": "請看 {quoted}。",
}

_WORDS = {
    "did": {"read": "讀取", "write": "寫入", "update": "更新", "copy": "複製"},
    "does": {"read": "讀取", "write": "寫入", "update": "更新", "copy": "以 cp.async 複製到"},
    "other_does": {"read": "讀取", "write": "寫入", "update": "更新", "copy": "以 cp.async 複製到"},
    "between": {"blocks": "block", "warps": "warp", "lanes": "同一 warp 的 thread"},
}

_SENTENCES: dict[str, tuple[str, str]] = {
    "no_launch": ("程式沒有啟動任何 kernel", "請在複製到裝置之後、複製回主機之前啟動 kernel。"),
    "not_copied_back": (
        "`{array}` 從未複製回主機",
        "請在寫出結果前以 cudaMemcpy(…, cudaMemcpyDeviceToHost) 複製。",
    ),
    "launch_refused": ("kernel {launched} 的啟動被拒絕：{why}", ""),
    "launch_failed": ("kernel {launched} 啟動失敗：{error}", "請用 cudaGetLastError() 檢查結果。"),
    "wrong_size": (
        "輸出檔有 {found} 位元組，應為 {expected} 位元組",
        "每個值佔 sizeof(float) 位元組，輸出檔沒有檔頭。",
    ),
    "past_the_end": ("{did}了 {memory} 結尾之後的 {bytes} 位元組", "請檢查索引是否超出陣列大小。"),
    "race": ("{does} `{array}`，同時另一個 {between} 在 {other} {other_does}它", ""),
    "race_in_warp": ("{does} `{array}`，同時同一 warp 的另一個 thread 在 {other} {other_does}它", ""),
    "uninitialised": ("讀取了從未寫入的 `{array}`", "請在讀取之前先寫入這塊記憶體。"),
    "never_written": ("複製到主機的 {bytes} 位元組中有 {count} 位元組從未寫入", ""),
    "endless_loop": ("{seconds} 秒後仍在這一行的迴圈中，可能永遠不會結束", ""),
    "step_wrong": ("到這一行為止的值都正確；這一行計算 `{array}`，應為 {expected}[，實際為 {found}]", ""),
    "scale_wrong": ("指數隨 Q Kᵀ 增長的倍率是 {slope}，應為 {expected}[（{meaning}）]", ""),
    "keys_unused": ("第 {keys} 個 key 在任何列都沒有權重[，每 {tile} 個 key 的 tile 皆如此]", ""),
    "keys_repeated": ("第 {keys} 個 key 被使用了不只一次[，每 {tile} 個 key 的 tile 皆如此]", ""),
    "tile_not_rescaled": (
        "每 {tile} 個 key 的 tile 之間權重不一致：執行中的最大值變大時，累加的結果沒有乘上 exp(m_old − m_new)",
        "",
    ),
    "rows_not_normalised": ("一列的權重總和是 {sum}，應為 1", ""),
    "mask_wrong": ("第 {query} 個 query 使用了 key {found}，應使用 key {expected}", ""),
    "rows_moved": ("每一列都是往後第 {by} 列的值", ""),
    "columns_moved": ("每一行都是往後第 {by} 行的值", ""),
    "transposed": ("`{array}` 被轉置使用", ""),
    "inputs_exchanged": ("{first} 和 {second} 互換了", ""),
    "input_unused": ("`{array}` 對輸出沒有影響", ""),
    "output_zero": ("錯誤的值全部是 0", ""),
    "output_nan": ("錯誤的值是 NaN", "請找 0/0 或 inf − inf。"),
    "output_constant": ("錯誤的值全部是 {value}：是被填入的，不是計算出來的", ""),
    "output_scaled": ("每個錯誤的列都是正確值的 {factor} 倍", ""),
}

CHINESE = Catalogue(_SENTENCES, _WORDS, _PHRASES)
